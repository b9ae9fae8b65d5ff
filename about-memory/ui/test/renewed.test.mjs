// A live report shares data with an earlier measurement. With new amounts, its rows equal the rows of a fresh load.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { folder } from "./browser.mjs";
import { pretend } from "./process.mjs";
import { end, serve } from "./server.mjs";

after(end);

const ROUNDS = process.env.THOROUGH ? 25 : 8;

/** Returns the page's model, without a page. */
async function model() {
  const contents = 'export { decode } from "./data/reports"; export { Model } from "./model/model";';
  const built = await build({ stdin: { contents, resolveDir: new URL("../src", import.meta.url).pathname, loader: "ts" }, bundle: true, format: "esm", write: false });
  const file = join(folder, "model.mjs");
  writeFileSync(file, built.outputFiles[0].text);
  return import(pathToFileURL(file).href);
}

let seed = 1;
/** Returns the next pseudo-random number below `end`. The sequence is the same in each run. */
const below = (end) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 16) % end;
const one = (of) => of[below(of.length)];

const KINDS = [[1, 2, 3, 1000, 2000], [0, 1, 100, 100], [-5, -1, 0, 1, 7], [0], [-3, -2], [5, 6, 7, 8, 9, 5_000_000], [1, 2 ** 39, 2 ** 40, 2 ** 41]];
let of = KINDS[0];
const amounts = new Map();

/**
 * Reports of the same paths. Their amounts are often equal, tiny, zero, negative, or too large for sums of floats.
 * Several measurements in a row have amounts of one kind. Between two of them, a few or many amounts change.
 */
function reports() {
  if (below(8) === 0) of = one(KINDS);
  const most = one([1, 2, 10]);
  const report = (path) => {
    if (!amounts.has(path) || below(most) === 0) amounts.set(path, 4096 * one(of));
    return { process: "Main Process (pid 1)", path, kind: 1, units: 0, amount: amounts.get(path), description: "A test." };
  };
  const leaves = ["a", "b", "c"].flatMap((branch) => Array.from({ length: 9 }, (_, at) => `${branch}/${branch === "a" ? "" : `${at % 3}/`}${"zyxwvutsr"[at]}`));
  const trees = ["explicit", "other"].flatMap((tree) => leaves.map((leaf) => report(`${tree}/${leaf}`)));
  return { version: 1, hasMozMallocUsableSize: true, reports: [...trees, { ...report("heap-allocated"), kind: 2 }] };
}

test("a later measurement has the rows of a fresh load for any amounts", async () => {
  const { decode, Model } = await model();
  const { close, origin, token } = await pretend("random", reports, serve);
  const call = async (path, body) => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const answer = await fetch(`${origin}/api/${path}`, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
    assert.equal(answer.status, 200, path);
    return new Uint8Array(await answer.arrayBuffer());
  };
  const measure = async (body) => JSON.parse(new TextDecoder().decode(await call("measure", { pids: [process.pid], ...body }))).report;
  const mark = await measure({ mark: true });
  const id = await measure({});
  const lengths = new Set();
  let [kept, large] = [0, 0];
  for (const against of [null, mark]) {
    const query = against === null ? "" : `?against=${against}`;
    const fresh = async () => decode(await call(`reports/${id}${query}`));
    for (const asked of [{ hideTiny: true }, { hideTiny: false }, { hideTiny: true, filter: "a/" }]) {
      for (const all of [null, true]) {
        const adapt = (model) => {
          model.apply({ ...model.settings, ...asked });
          if (all !== null) model.toggleAll(all);
          return model;
        };
        const live = adapt(new Model(await fresh()));
        for (let round = 0; round < ROUNDS; round++) {
          assert.ok(live.rows.length > 0);
          const before = live.data;
          live.renew(decode(await call("measure", { pids: [process.pid], renew: id, look: { against, shape: before.shape } }), before));
          if (live.data.parent === before.parent) kept++;
          if (live.data.big) large++;
          assert.equal(live.rows.text(), adapt(new Model(await fresh())).rows.text(), `${against} ${JSON.stringify(asked)} ${all} ${round}`);
          lengths.add(live.rows.length);
        }
      }
    }
  }
  assert.ok(lengths.size > 10, "rows must appear and disappear");
  // A warning about a value makes new nodes when it appears or disappears.
  assert.ok(kept > ROUNDS, "only amounts change");
  assert.ok(large > 0, "sums are too large for floats");
  await close();
});
