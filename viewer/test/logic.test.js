// The logic of the viewer, without a page: `node --test test/*.test.js`.
import assert from "node:assert/strict";
import test from "node:test";
import { Index } from "../src/data.js";
import { oneLine, parsed, percent, si } from "../src/format.js";
import { clampScale, clampStart, spread } from "../src/geometry.js";
import { anchor, pathOf } from "../src/ids.js";
import { matcher, plain } from "../src/query.js";
import { comparator } from "../src/sort.js";

test("ids and paths are each other's inverse", () => {
  for (const path of ["layer1.0.relu@2", "a-b_c", "größe.0", "x y", "😀", "layers.0.add@12"]) {
    assert.equal(pathOf("fig", anchor("fig", path)), path);
  }
  assert.equal(anchor("fig", "layer1.relu@2"), "fig-layer1.relu..2");
  assert.equal(anchor("fig", "a b"), "fig-a_x0020_b");
  assert.equal(pathOf("fig", "figure-a"), null);
});

test("a search finds shapes, arguments and whole numbers", () => {
  const has = (query, text) => matcher(query)(plain(text));
  assert.ok(has("Conv2d 3x3", "conv1 Conv2d 3×3 s2"));
  assert.ok(has("kernel_size=3", "Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1))"));
  assert.ok(has("kernel_size=(3, 3)", "Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1))"));
  assert.ok(!has("kernel_size=3", "Conv2d(64, 64, kernel_size=(7, 7), stride=(3, 3))"));
  assert.ok(has("8 heads", "MultiheadAttention 8 heads"));
  assert.ok(!has("8 heads", "MultiheadAttention 128 heads"));
  assert.ok(has("denseblock3.denselayer7.conv2", "features.denseblock3.denselayer7.conv2 Conv2d"));
  assert.ok(!has("layer1", "layer10.conv"));
  assert.ok(has("64×112×112", "f32 1×64×112×112"));
  assert.equal(matcher("  "), null);
});

test("zoom is clamped between all in sight and the largest", () => {
  assert.equal(clampScale(0.01, 0.4), 0.4);
  assert.equal(clampScale(0.5, 3), 1);
  assert.equal(clampScale(99, 0.4), 6);
  assert.equal(clampStart(50, 100, 300, true), 100);
  assert.equal(clampStart(50, 100, 300, false), 0);
  assert.equal(clampStart(-900, 1000, 300, true), -700);
  assert.equal(clampStart(20, 1000, 300, true), 0);
});

test("room is made on both sides of a line, and behind", () => {
  const move = spread(10, 20, 30, 5, 7);
  assert.deepEqual([0, 10, 20, 30, 40].map(move), [0, 10, 25, 42, 52]);
});

test("numbers are written as on the page and read again", () => {
  assert.equal(si(1814073344, "MACs"), "1.81 GMACs");
  assert.equal(si(950, "B"), "950 B");
  assert.equal(percent(1, 3), "33 %");
  assert.equal(percent(1, 10000), "<0.1 %");
  assert.equal(parsed("1.81 GMACs"), 1.81e9);
  assert.equal(parsed("11,689,512"), 11689512);
  assert.equal(parsed("−3"), -3);
  assert.ok(Number.isNaN(parsed("conv1")));
  assert.equal(oneLine(["1×3", "2×4", "5"]), "1×3 +2");
  assert.equal(oneLine([]), "");
});

test("cells are sorted as numbers where all are, else by names, empty ones last", () => {
  const sorted = (texts, up) => [...texts].sort(comparator(texts, up));
  assert.deepEqual(sorted(["10", "", "9", "1 k"], true), ["9", "10", "1 k", ""]);
  assert.deepEqual(sorted(["10", "", "9", "1 k"], false), ["1 k", "10", "9", ""]);
  assert.deepEqual(sorted(["layer10", "layer9", ""], true), ["layer9", "layer10", ""]);
});

const row = (name, kind) => [name, "call_module", kind, "", 0, name, "", "", [], [], 5, "", null, null, "", [], ""];
const DATA = {
  format: "auto",
  totals: [100, null, null],
  types: ["torch.nn.Linear", "net.Block"],
  links: { 0: "https://docs.example/Linear" },
  sources: {},
  columns: ["name"],
  groups: [
    { t: 1, p: [""], r: [row("x", "input")] },
    { t: 1, p: ["layers.0", "layers.1"], r: [row("fc", "Linear"), row("sub.act", "ReLU")] },
  ],
  modules: [["layers.0", 1, 50, null, null, [], [], ""]],
};

test("nodes are found at each place of their body", () => {
  const index = new Index(DATA);
  assert.equal(index.find("layers.1.fc").kind, "Linear");
  assert.equal(index.find("layers.1.sub.act").around, "layers.1");
  assert.equal(index.find("x").kind, "input");
  assert.equal(index.find("layers.0").type, "net.Block");
  assert.equal(index.find("layers.2.fc"), null);
  assert.equal(index.find("layers.1.fc").link, "https://docs.example/Linear");
  assert.equal(index.share(50, 0), "50 %");
  assert.deepEqual(index.rows().map(({ path }) => path), ["x", "layers.0.fc", "layers.0.sub.act"]);
});
