// The reader's actions: open, close, filter, jump, zoom, copy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, golden, open, report, shown, text, write } from "./browser.mjs";

const sample = golden("firefox/sample.json.gz");
const MB = 1 << 20;

test("a click opens and closes, and is remembered when the filter changes", async () => {
  const { page, faults, close } = await open(
    write(
      report(
        { path: "explicit/a/x", amount: 50 * MB },
        { path: "explicit/a/y", amount: 30 * MB },
        { path: "explicit/b", amount: 20 * MB },
        { path: "heap-allocated", kind: 2, amount: 100 * MB },
      ),
    ),
  );
  const at = (name) => page.locator(".row", { has: page.locator(`.name:text-is("${name}")`) });
  assert.equal(await at("x").count(), 1);
  await at("a").click();
  assert.equal(await at("x").count(), 0);
  assert.match(await at("a").innerText(), / \+\+ a$/);
  assert.equal(await at("a").getAttribute("aria-expanded"), "false");
  await ask(page, { filter: "/a/" });
  await ask(page, { verbose: true });
  assert.equal(await at("x").count(), 0, "still closed");
  assert.ok(!(await text(page)).includes("── x\n"), "must be closed in the text, too");
  await at("a").click();
  assert.equal(await at("x").count(), 1);
  await page.click("#collapse");
  assert.equal(await at("x").count(), 0);
  await page.click("#expand");
  assert.equal(await at("x").count(), 1);
  assert.deepEqual(faults, []);
  await close();
});

test("the keyboard does what the mouse does", async () => {
  const { page, close } = await open(
    write(report({ path: "explicit/a/x" }, { path: "explicit/a/y" }, { path: "explicit/b" })),
  );
  const active = () => page.$eval(".row.active", (row) => row.textContent);
  await page.focus(".list");
  for (let i = 0; i < 20 && !/ -- a$/.test(await active()); i++) await page.keyboard.press("ArrowDown");
  assert.match(await active(), / -- a$/);
  await page.keyboard.press("ArrowLeft");
  assert.match(await active(), / \+\+ a$/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await active(), /── x$/);
  await page.keyboard.press("ArrowLeft");
  assert.match(await active(), / -- a$/);
  await page.keyboard.press("End");
  assert.match(await active(), /^End of/);
  await close();
});

test("tiny entries are grouped, and shown on request", async () => {
  const file = report(
    { path: "explicit/large", amount: 100 * MB },
    ...["a", "b", "c"].map((name) => ({ path: `explicit/${name}`, amount: 1000 })),
  );
  const { page, close } = await open(write(file));
  assert.match(await text(page), / \+\+ \(3 tiny\)\n/);
  await page.locator(".row", { hasText: "(3 tiny)" }).click();
  assert.match(await text(page), / -- \(3 tiny\)\n {3}.*── a\n/);
  await ask(page, { hideTiny: false });
  assert.doesNotMatch(await text(page), /tiny/);
  assert.match(await text(page), /0\.00 MB \(00\.00%\) ── a\n/);
  await close();
});

test("the filter is applied while the reader types", async () => {
  const { page, close } = await open(write(sample));
  const before = await text(page);
  await page.click("#filter");
  await page.keyboard.type("explicit/js-non-window");
  await page.waitForFunction((before) => window.aboutMemoryText() !== before, before);
  const lines = (await text(page)).split("\n").filter((line) => /[├└]/.test(line));
  assert.ok(lines.length > 0);
  await page.fill("#filter", "");
  await page.waitForFunction((before) => window.aboutMemoryText() === before, before);
  await close();
});

test("the index links to each process and marks filtered processes", async () => {
  const { page, close } = await open(write(sample));
  const links = page.locator("#processes a");
  const names = await links.allInnerTexts();
  assert.ok(names.length > 3);
  for (const i of [names.length - 1, 1]) {
    await links.nth(i).click();
    const top = (await shown(page)).slice(0, 45);
    assert.ok(top.includes(names[i]), names[i]);
  }
  await ask(page, { filter: "zzz" });
  assert.equal(await links.count(), 0);
  assert.deepEqual(await page.locator("#processes .none").allInnerTexts(), names);
  assert.ok((await text(page)).endsWith("\nNo results found.\n"));
  await close();
});

test("tooltips explain entries", async () => {
  const { page, close } = await open(
    write(
      report(
        { path: "explicit/a", amount: 3_000_000, description: "Memory used by a thing." },
        { path: "explicit/b/c", amount: 20 },
        { path: "explicit/b/d", amount: 2_000_000 },
        { path: "heap-allocated", kind: 2, amount: 6_000_000, description: "All of the heap." },
      ),
    ),
  );
  const tip = (name) => page.locator(".row", { has: page.locator(`.name:text-is("${name}")`) }).getAttribute("title");
  assert.equal(await tip("a"), "3,000,000 B\nMemory used by a thing.");
  assert.equal(await tip("b"), "2,000,020 B\nThe sum of the entries below.");
  assert.equal(await tip("heap-unclassified"), "999,980 B\nMemory in heap-allocated which no reporter claims.");
  await close();
});

const trail = (page) => page.$$eval(".trail button", (all) => all.map((one) => one.textContent));

test("the treemap starts at explicit and goes into trees", async () => {
  const { page, faults, close } = await open(write(sample));
  await page.click("#tab-treemap");
  assert.equal(await page.$eval(".treemap select", (choice) => choice.selectedOptions[0].textContent), "explicit");
  const title = () => page.locator(".box").first().getAttribute("title");
  assert.match(await title(), /^Main Process \(pid 687\)\n272\.05 MB \(285,[0-9,]+ B\), [0-9.]+% of All processes$/);
  assert.ok((await page.locator(".box.deep").count()) > 5);
  const boxes = page.locator(".box.opens");
  await boxes.first().click({ position: { x: 3, y: 3 } });
  assert.deepEqual(await trail(page), ["All processes", "Main Process (pid 687)"]);
  await page.locator(".box.opens", { hasText: /^js-non-window / }).first().click({ position: { x: 3, y: 3 } });
  assert.equal((await trail(page))[2], "js-non-window");
  assert.match(
    await title(),
    /^explicit\/js-non-window\/.+\n[0-9.]+ MB \([0-9,]+ B\), [0-9.]+% of explicit\/js-non-window\nMain Process \(pid 687\)$/,
  );
  assert.ok((await page.locator(".box").count()) > 5);
  const area = await page.$eval(".boxes", (all) => all.clientWidth * all.clientHeight);
  const covered = await page.$$eval(".box:not(.deep)", (all) => all.reduce((sum, one) => sum + one.offsetWidth * one.offsetHeight, 0));
  assert.ok(covered > area * 0.9 && covered <= area * 1.02, `${covered} of ${area}`);
  await page.locator(".trail button").first().click();
  assert.equal((await trail(page)).length, 1);
  await page.selectOption(".treemap select", { label: "resident" });
  assert.match(await title(), /^Main Process \(pid 687\)\n374\.04 MB /);
  await boxes.first().click({ position: { x: 3, y: 3 } });
  assert.deepEqual(await trail(page), ["All processes", "Main Process (pid 687): explicit"]);
  assert.ok((await page.textContent(".trail")).endsWith(" 272.05 MB"));
  await page.click("#tab-tree");
  assert.ok((await shown(page)).length > 10);
  assert.deepEqual(faults, []);
  await close();
});

test("the treemap of one process starts in its tree", async () => {
  const explicit = report(
    { path: "explicit/a/x", amount: 50 * MB },
    { path: "explicit/a/y", amount: 30 * MB },
    { path: "explicit/b", amount: 20 * MB },
    { path: "heap-allocated", kind: 2, amount: 100 * MB },
    { path: "resident", kind: 2, amount: 120 * MB },
  );
  const { page, faults, close } = await open(write(explicit));
  await page.click("#tab-treemap");
  assert.deepEqual(await trail(page), ["explicit"]);
  const captions = await page.$$eval(".box", (all) => all.map((one) => one.textContent));
  assert.deepEqual(captions, ["a 80.00 MB (80.00%)", "x 50.00 MB (62.50%)", "y 30.00 MB (37.50%)", "b 20.00 MB (20.00%)"]);
  const about = () => page.textContent(".treemap .about");
  assert.equal(await about(), "explicit/a · 80.00 MB (83,886,080 B), 80.00% of explicit");
  await page.locator(".box", { hasText: /^y / }).hover();
  assert.equal(await about(), "explicit/a/y · 30.00 MB (31,457,280 B), 37.50% of explicit/a");
  await ask(page, { verbose: true });
  assert.equal(await page.locator(".box").first().getAttribute("title"), "explicit/a\n83,886,080 B, 80.00% of explicit");
  assert.deepEqual(faults, []);
  await close();
});

test("the treemap of a file without explicit starts at its first tree", async () => {
  const other = report(
    { path: "counted/n", units: 1, kind: 2, amount: 5 },
    { path: "mapped/a", kind: 2, amount: 3 * MB },
    { path: "mapped/b", kind: 2, amount: MB },
    { path: "resident", kind: 2, amount: 9 * MB },
  );
  const { page, close } = await open(write(other));
  await page.click("#tab-treemap");
  assert.deepEqual(await trail(page), ["mapped"]);
  const choices = await page.$$eval(".treemap option", (all) => all.map((one) => one.textContent));
  assert.deepEqual(choices, ["mapped", "resident"]);
  await close();
});

test("the treemap has a tree whose name is empty", async () => {
  const { page, close } = await open(
    write(report({ path: "/a", kind: 2, amount: 3 * MB }, { path: "resident", kind: 2, amount: 9 * MB })),
  );
  await page.click("#tab-treemap");
  assert.match(await page.textContent(".treemap .about"), /3\.00 MB/);
  await page.selectOption(".treemap select", { label: "resident" });
  assert.match(await page.textContent(".treemap .about"), /9\.00 MB/);
  await close();
});

test("text that does not fit a box of the treemap is cut between lines", async () => {
  const parts = Array.from({ length: 60 }, (_, i) => ({ path: `explicit/a rather long name ${i}`, amount: (i + 1) ** 2 * 1000 }));
  const { page, close } = await open(write(report(...parts)));
  await page.click("#tab-treemap");
  const faults = await page.$$eval(".box", (boxes) =>
    boxes.flatMap((box) => {
      const caption = box.querySelector(".caption");
      if (!caption) return box.offsetWidth < 24 || box.offsetHeight < 16 ? [] : [`${box.title}: no text`];
      const inside = caption.offsetLeft >= 0 && caption.offsetTop + caption.offsetHeight <= box.clientHeight + 2;
      return caption.offsetHeight % 14 === 0 && inside ? [] : [`${box.title}: ${caption.offsetHeight}`];
    }),
  );
  assert.deepEqual(faults, []);
  await close();
});

test("the keyboard reaches every box of the treemap, goes in and out", async () => {
  const parts = Array.from({ length: 12 }, (_, i) => ({ path: `explicit/p${i}/q`, amount: (i + 1) ** 2 * MB }));
  const inner = parts.map((part) => ({ ...part, path: part.path.replace("/q", "/r") }));
  const { page, faults, close } = await open(write(report(...parts, ...inner)));
  await page.click("#tab-treemap");
  await page.focus(".treemap .boxes");
  const active = () =>
    page.evaluate(() => {
      const boxes = document.querySelector(".treemap .boxes");
      const box = document.getElementById(boxes.getAttribute("aria-activedescendant"));
      return { label: box.getAttribute("aria-label"), role: box.getAttribute("role") };
    });
  const name = async () => (await active()).label.split("\n")[0].replace("explicit/", "");
  assert.deepEqual([await name(), (await active()).role], ["p11", "treeitem"]);
  // All boxes that the arrow keys reach from the largest box. Each box is then reached again from the start.
  const ways = new Map([["p11", []]]);
  for (const [, way] of ways) {
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) {
      await page.keyboard.press("Home");
      for (const step of [...way, key]) await page.keyboard.press(step);
      const found = await name();
      if (!ways.has(found)) ways.set(found, [...way, key]);
    }
  }
  assert.equal(ways.size, parts.length, [...ways.keys()].join());
  await page.keyboard.press("End");
  assert.equal(await name(), "p0");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  const beside = await name();
  assert.notEqual(beside, "p11");
  assert.ok((await page.textContent(".treemap .about")).startsWith(`explicit/${beside} · `));
  await page.keyboard.press("Enter");
  assert.deepEqual(await trail(page), ["explicit", beside]);
  assert.match((await active()).label, new RegExp(`^explicit/${beside}/[qr]\\n.*50\\.00% of explicit/${beside}$`));
  await page.keyboard.press("Enter");
  assert.equal((await trail(page)).length, 2, "a leaf cannot be entered");
  await page.keyboard.press("Escape");
  assert.deepEqual(await trail(page), ["explicit"]);
  assert.equal(await name(), beside, "going out returns to the entered box");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Backspace");
  assert.deepEqual(await trail(page), ["explicit"]);
  // The ring marks the active box. It is visible while the boxes have the keyboard focus.
  const ring = await page.$eval(".treemap .ring", (ring) => getComputedStyle(ring).visibility);
  assert.equal(ring, "visible");
  const places = await page.evaluate(() => {
    const boxes = document.querySelector(".treemap .boxes");
    const box = document.getElementById(boxes.getAttribute("aria-activedescendant"));
    return [box, boxes.querySelector(".ring")].map((one) => JSON.stringify(one.getBoundingClientRect()));
  });
  assert.equal(places[0], places[1]);
  await page.focus(".treemap select");
  assert.equal(await page.$eval(".treemap .ring", (ring) => getComputedStyle(ring).visibility), "hidden");
  assert.deepEqual(
    await page.$eval(".treemap .boxes", (boxes) => [boxes.getAttribute("role"), boxes.tabIndex]),
    ["tree", 0],
  );
  assert.deepEqual(faults, []);
  await close();
});

test("a diff has marks, and colours in the treemap", async () => {
  const first = report({ path: "explicit/a", amount: 5 * MB }, { path: "explicit/gone", amount: 3 * MB });
  const second = report({ path: "explicit/a", amount: 9 * MB }, { path: "explicit/new", amount: 2 * MB });
  const { page, faults, close } = await open(write(first, second));
  assert.match(await page.title(), /^about:memory \(diff of .* and .*\)$/);
  const all = await text(page);
  assert.match(all, /4\.00 MB .*── a\n/);
  assert.match(all, /-3\.00 MB .*── gone \[-\]\n/);
  assert.match(all, /2\.00 MB .*── new \[\+\]\n/);
  await page.click("#tab-treemap");
  assert.equal(await page.locator(".box.shrink", { hasText: "gone" }).count(), 1);
  assert.equal(await page.locator(".box.grow", { hasText: "new +2.00 MB" }).count(), 1);
  assert.deepEqual(faults, []);
  await close();
});

test("the text is copied by a button", async () => {
  const { page, close } = await open(write(sample), { permissions: ["clipboard-read", "clipboard-write"] });
  await page.click("#copy");
  await page.waitForFunction(() => document.getElementById("message").textContent === "Copied.");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await text(page));
  await close();
});

test("colours follow the reader's choice", async () => {
  const file = write(report({ path: "explicit/a" }));
  const brightness = async (colorScheme) => {
    const { page, close } = await open(file, { colorScheme });
    const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await close();
    return colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  };
  assert.ok((await brightness("light")) > 600);
  assert.ok((await brightness("dark")) < 200);
});

test("a deep tree is shown and copied without a stack overflow", async () => {
  const deep = (n) => Array.from({ length: n }, (_, i) => `d${i}`).join("/");
  const reports = [];
  for (let depth = 1; depth <= 1500; depth++) reports.push({ path: `explicit/${deep(depth)}/leaf`, amount: depth });
  const { page, faults, close } = await open(write(report(...reports)));
  await page.click("#expand");
  assert.ok((await text(page)).split("\n").length > 3000);
  await page.focus(".list");
  await page.keyboard.press("End");
  assert.match((await shown(page)).at(-1), /^End of/);
  assert.deepEqual(faults, []);
  await close();
});
