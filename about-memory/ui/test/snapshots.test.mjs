// Snapshots that the page takes, and groups among suspects.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { folder } from "./browser.mjs";
import { edge, node, writeSnapshot } from "./heap_snapshot.mjs";
import { pretend } from "./pretended.mjs";
import { end, serve } from "./server.mjs";

after(end);

const small = fileURLToPath(new URL("../../../heap-graph/tests/golden/small-a.fxsnapshot", import.meta.url));

test("a snapshot counts as taken when it is read", async () => {
  const runtime = join(folder, "taking");
  const waiting = [];
  const answer = (request, stream) => {
    if (request === "heap-snapshot") waiting.push(stream);
    else stream.end('{"version":1}\n');
  };
  pretend(runtime, 4_200_001, { name: "slow", requests: ["heap-snapshot"] }, answer);
  const { page, faults, close } = await serve({ XDG_RUNTIME_DIR: runtime });
  const press = async () => {
    await page.click(".processes .menu summary");
    await page.click(".processes .choices button:text-is('Take snapshot')");
  };
  const messages = () => page.$$eval(".messages li", (all) => all.map((one) => one.textContent.replace(/^\S+ /, "")));
  const take = async () => {
    // The request may arrive before the click returns.
    const listed = waiting.length + 1;
    await press();
    await page.waitForFunction((n) => document.querySelectorAll("#side li small").length === n, listed);
    while (waiting.length === 0) await page.waitForTimeout(10);
  };
  await page.waitForSelector(".processes .menu summary");
  await take();
  assert.deepEqual(await messages(), [], "the server has accepted the request, but has not read the snapshot yet");
  waiting.pop().end(readFileSync(small));
  await page.waitForSelector(".messages li");
  assert.deepEqual(await messages(), ["Took a snapshot of process 4200001"]);

  await press();
  while (waiting.length === 0) await page.waitForTimeout(10);
  waiting.pop().end('{"version":1,"error":"not today"}\n');
  await page.waitForFunction(() => document.querySelectorAll(".messages li").length === 2);
  assert.match((await messages())[0], /not today/);

  // The newest snapshot is removed while the page waits for it, and no later snapshot follows.
  await press();
  await page.waitForFunction(() => document.querySelector("#side li:last-child small")?.textContent === "Saving snapshot…");
  await page.click("#side li:last-child button[aria-label^='Remove this snapshot']");
  await page.waitForFunction(() => document.querySelectorAll(".messages li").length === 3);
  assert.match((await messages())[0], /The snapshot was removed\./);
  assert.deepEqual(faults, []);
  await close();
});

test("suspects of one class are a group that opens", async () => {
  const path = join(folder, "suspects.fxsnapshot");
  const ids = Array.from({ length: 1200 }, (_, at) => 100 + at);
  const frames = ids.map((id) => node(id, { type: "JSObject", coarse: 1, name: "SavedFrame", size: 100 }));
  const cache = node(5000, { type: "JSObject", coarse: 1, name: "Cache", size: 80_000 });
  writeSnapshot(path, [node(1, { type: "Root", edges: [...ids, 5000].map((id) => edge(id, "x")) }), ...frames, cache]);
  const { page, faults, close, go, read, rows } = await serve(path);
  await read(1);
  await go("#/memory/1/suspects");
  const [group, alone, ...others] = await rows();
  assert.deepEqual(others, []);
  assert.match(group, /^117\.19 KiB(59|60)\.\d\d%.*▸ 1200 of SavedFrame$/);
  assert.match(alone, /Cache @ 0x1388$/);
  // A group has no paths, but the nodes in it have.
  assert.match(await page.textContent(".paths"), /Select an item/);
  await page.focus(".table .list");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => Number(document.documentElement.dataset.rows) === 1002);
  assert.match((await rows())[1], /SavedFrame @ 0x/);
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector(".paths .path");
  assert.deepEqual(faults, []);
  await close();
});

test("a snapshot opens on a summary with sentences about what keeps memory alive", async () => {
  const { page, faults, close, read } = await serve(fileURLToPath(new URL("../../../heap-graph/tests/golden/medium.fxsnapshot", import.meta.url)));
  await read(1);
  await page.click("#side li a[href='#/memory/1/summary']");
  await page.waitForSelector(".summary .columns section:nth-of-type(2) li");
  assert.match(await page.textContent(".summary .size"), /^[\d.]+ [KM]iB in [\d,]+ nodes$/);
  const sentences = await page.$$eval(".summary .what", (all) => all.map((one) => one.textContent));
  assert.ok(sentences.every((text) => /(keeps?) [\d.]+% of the heap alive: |No node alone/.test(text)), sentences.join("\n"));
  const first = await page.textContent(".summary li .name");
  await page.click(".summary li a");
  await page.waitForSelector(".windowed .row .name");
  assert.ok((await page.textContent(".windowed .row")).includes(first.split(" › ").pop()), first);
  assert.deepEqual(faults, []);
  await close();
});
