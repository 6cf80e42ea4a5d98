// Arithmetic of zooming and of making room; nothing here touches the page.

export const MOST = 6; // of the natural size

/**
 * Clamp a scale: at least all of the drawing is in sight, at most it is `MOST` times its natural size.
 * @param {number} scale
 * @param {number} fit the scale at which all of the drawing is in sight
 */
export const clampScale = (scale, fit) => Math.min(MOST, Math.max(Math.min(1, fit), scale));

/**
 * Return where a drawing begins along one axis of the view: in the middle where it is smaller, without a blank
 * margin where it is larger.
 * @param {number} wanted
 * @param {number} size of the drawing
 * @param {number} room of the view
 * @param {boolean} centred whether a smaller drawing stands in the middle, or at the start
 */
export function clampStart(wanted, size, room, centred) {
  if (size <= room) return centred ? (room - size) / 2 : 0;
  return Math.min(0, Math.max(room - size, wanted));
}

/**
 * Return how coordinates move where a module is opened: those before it stay, those behind it move, and those beside
 * it are spread between `middle`, where its main line runs, and its borders.
 * @param {number} start
 * @param {number} middle
 * @param {number} end
 * @param {number} before
 * @param {number} after
 * @returns {(v: number) => number}
 */
export function spread(start, middle, end, before, after) {
  return (v) => {
    if (v <= start) return v;
    if (v >= end) return v + before + after;
    return v <= middle
      ? v + before * ((v - start) / (middle - start || 1))
      : v + before + after * ((v - middle) / (end - middle || 1));
  };
}

/**
 * Return the points of a path as pairs of numbers.
 * @param {string} d
 * @returns {number[][]}
 */
export const points = (d) => (d.match(/-?[\d.]+ -?[\d.]+/g) || []).map((pair) => pair.split(" ").map(Number));
