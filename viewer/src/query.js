// What a search means.

/**
 * Write text so that it can be compared: lower case, `×` for an x between numbers, no spaces or brackets in calls.
 * @param {string} text
 */
export function plain(text) {
  return text
    .toLowerCase()
    .replace(/(\d)\s*[x*]\s*(?=\d)/g, "$1×")
    .replace(/\s*=\s*/g, "=")
    .replace(/=[([]/g, "=")
    .replace(/(\w)=([^,()\]]+), \2(?=[)\],])/g, "$1=$2");
}

/**
 * Return a function that tells whether a text has all the words of a query. A number is found as a whole, so that
 * `8 heads` does not find 128 heads.
 * @param {string} query
 * @returns {((text: string) => boolean) | null} null for an empty query
 */
export function matcher(query) {
  const words = plain(query).split(/[\s,()[\]]+/).filter(Boolean);
  if (!words.length) return null;
  const tests = words.map((word) => {
    const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp((/^\d/.test(word) ? "(?<![\\d.])" : "") + escaped + (/\d$/.test(word) ? "(?!\\d)" : ""));
  });
  return (text) => tests.every((test) => test.test(text));
}
