// What a reader does with the page: open, close, filter, jump, zoom, copy.
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
  assert.ok(!(await text(page)).includes("── x\n"), "closed in the text too");
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

test("tiny entries are grouped, and shown when asked for", async () => {
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

test("the filter is applied while one types", async () => {
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

test("the index leads to each process, and says which are filtered out", async () => {
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

test("tool-tips say what an entry is", async () => {
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
  assert.equal(await tip("b"), "2,000,020 B\nThe sum of what is below.");
  assert.equal(await tip("heap-unclassified"), "999,980 B\nMemory in heap-allocated which no reporter claims.");
  await close();
});

test("the treemap shows processes and goes into trees", async () => {
  const { page, faults, close } = await open(write(sample));
  await page.click("#tab-treemap");
  const boxes = page.locator("button.box");
  await boxes.first().click({ position: { x: 3, y: 3 } });
  const trail = () => page.$$eval(".trail button", (all) => all.map((one) => one.textContent));
  assert.deepEqual(await trail(), ["All processes", "Main Process (pid 687)"]);
  await page.locator("button.box", { hasText: /^js-non-window / }).first().click({ position: { x: 3, y: 3 } });
  assert.equal((await trail())[2], "js-non-window");
  assert.ok((await page.locator(".box").count()) > 5);
  const area = await page.$eval(".boxes", (all) => all.clientWidth * all.clientHeight);
  const covered = await page.$$eval(".box:not(.deep)", (all) => all.reduce((sum, one) => sum + one.offsetWidth * one.offsetHeight, 0));
  assert.ok(covered > area * 0.9 && covered <= area * 1.02, `${covered} of ${area}`);
  await page.locator(".trail button").first().click();
  assert.equal((await trail()).length, 1);
  assert.equal(await page.locator(".box").first().getAttribute("title"), "Main Process (pid 687) 374.04 MB");
  await page.selectOption(".treemap select", "explicit");
  assert.equal(await page.locator(".box").first().getAttribute("title"), "Main Process (pid 687) 272.05 MB");
  assert.ok((await page.locator(".box.deep").count()) > 5);
  await page.click("#tab-tree");
  assert.ok((await shown(page)).length > 10);
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
  await page.locator("button.box").first().click({ position: { x: 3, y: 3 } });
  assert.equal(await page.locator(".box.shrink", { hasText: "gone" }).count(), 1);
  assert.equal(await page.locator(".box.grow", { hasText: "new" }).count(), 1);
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

test("a deep tree is shown and copied without end of stack", async () => {
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
