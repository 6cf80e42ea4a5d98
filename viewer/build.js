// Bundle and minify src/ into the files that a site serves. The first line holds a digest of the sources, by which
// a test without Node can see whether the files are up to date. `node build.js --check` writes nothing and fails if not.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const here = new URL(".", import.meta.url);
const target = new URL("../sphinx_fxgraph/static/", here);
const names = readdirSync(new URL("src/", here)).filter((name) => name.endsWith(".js")).sort();
const digest = createHash("sha256");
for (const name of names) digest.update(name).update(readFileSync(new URL(`src/${name}`, here), "utf8"));
const banner = `/* Built from viewer/src by viewer/build.js; do not edit. Sources: ${digest.digest("hex")} */`;
const check = process.argv.includes("--check");

for (const [source, name] of [["main.js", "fxgraph.js"], ["nodes.js", "fxgraph-nodes.js"], ["models.js", "fxgraph-table.js"]]) {
  const result = await build({
    entryPoints: [new URL(`src/${source}`, here).pathname],
    banner: { js: banner },
    bundle: true,
    charset: "utf8",
    format: "iife",
    legalComments: "none",
    minify: true,
    target: "es2020",
    write: false,
  });
  const file = new URL(name, target);
  const text = result.outputFiles[0].text;
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`${name} is not up to date: run node build.js`);
    process.exitCode = 1;
  }
}
