// The status line while the server computes, in Firefox's words. The tests delay the server's answers.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { end, serve } from "./server.mjs";

after(end);

const small = fileURLToPath(new URL("../../../heap-graph/tests/golden/small-a.fxsnapshot", import.meta.url));
const status = async (page, text) => {
  const is = (text) => document.getElementById("status").textContent === text;
  await page.waitForFunction(is, text, { timeout: 10_000 }).catch(async () => assert.equal(await page.textContent("#status"), text, page.url()));
};

test("each view shows what it waits for, and clears this text afterwards", async () => {
  const { page, faults, close, read } = await serve(small, small);
  await read(2);
  let held = [];
  await page.route("**/api/query", (route) => void held.push(route));
  for (const [hash, text] of [
    ["#/memory/1/census?by=type", "Generating aggregate report…"],
    ["#/memory/1/treemap", "Generating tree map…"],
    ["#/memory/1/dominators", "Generating dominators report…"],
    ["#/memory/1/classes", "Computing dominator's retained sizes…"],
    ["#/memory/1/search?q=String", "Searching…"],
    ["#/memory/1/suspects", "Looking for suspects…"],
    ["#/diff/1/2?by=type", "Computing difference…"],
  ]) {
    held = [];
    await page.evaluate((hash) => (location.hash = hash), hash);
    await status(page, text);
    assert.ok(held.length > 0, `${hash} asks the server`);
    for (const route of held.splice(0)) await route.continue().catch(() => {});
    // The page requests the remaining data.
    for (let turn = 0; turn < 100 && (await page.textContent("#status")) === text; turn++) {
      for (const route of held.splice(0)) await route.continue().catch(() => {});
      await page.waitForTimeout(20);
    }
    assert.notEqual(await page.textContent("#status"), text);
  }
  assert.deepEqual(faults, []);
  await close();
});

test("the list shows the state of each snapshot", async () => {
  const { page, faults, close, read } = await serve(small);
  await read(1);
  for (const [state, text] of [["saving", "Saving snapshot…"], ["importing", "Importing snapshot…"], ["reading", "Reading snapshot…"]]) {
    await page.route("**/api/state", async (route) => {
      const response = await route.fetch();
      const all = await response.json();
      await route.fulfill({ response, json: { ...all, snapshots: all.snapshots.map((one) => ({ ...one, state })) } });
    });
    await page.reload();
    await page.waitForFunction((text) => document.querySelector("#side li small")?.textContent === text, text, { timeout: 10_000 });
    await page.unroute("**/api/state");
  }
  assert.deepEqual(faults, []);
  await close();
});
