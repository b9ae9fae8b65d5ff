// Foreign names in every view of `serve`. Characters that deceive a reader must be escaped wherever a name is shown,
// and a name of a megabyte must not widen the page.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { folder } from "./browser.mjs";
import { edge, frame, node, writeSnapshot } from "./heap_snapshot.mjs";
import { pretend } from "./pretended.mjs";
import { end, serve } from "./server.mjs";

after(end);

/** The characters that a page must escape, as in `escape.ts`. The page itself adds the line breaks of tooltips. */
const DECEPTIVE = "[\\p{Cc}\\u{61c}\\u{ad}\\u{180e}\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{feff}\\u{fff9}-\\u{fffb}\\u{e0000}-\\u{e007f}]";
const NAMES = ["safe::Type", "safe::T\u200bype", "a\u202egnp.exe\u2066b", "nul\u0000b", "esc\x1b[31mred\x1b]0;t\x07", "c1\u009b31m", "nl\nFAKE\r\nLINE", "ls\u2028x", "tag\u{e0041}x", "\ufeffbom", "\u061calm", "<img src=x onerror=window.INJ=1>"];
const LONG = "x".repeat(1_000_000);
const ALL = [...NAMES, LONG];

function snapshot(path, names) {
  const nodes = [node(1, { type: "Root", edges: names.map((name, at) => edge(100 + at, name)) })];
  names.forEach((name, at) => {
    nodes.push(node(100 + at, { type: name, size: 1000 * (at + 1), stack: frame(1000 + at, name), edges: [edge(500 + at, name)] }));
    nodes.push(node(500 + at, { type: "JSObject", coarse: 1, name, size: 500 }));
  });
  writeSnapshot(path, nodes);
}

function report(path, names, factor) {
  const of = (name) => {
    const escaped = name.replaceAll("/", "\\");
    const one = { process: `${name.slice(0, 3000)} (pid 1)`, units: 0, description: name };
    return [
      { ...one, path: `explicit/${escaped}`, kind: 1, amount: factor << 20 },
      { ...one, path: `explicit/a/${escaped}/x`, kind: 1, amount: factor << 21 },
      { ...one, path: `single-${escaped}`, kind: 2, amount: factor },
    ];
  };
  writeFileSync(path, JSON.stringify({ version: 1, hasMozMallocUsableSize: true, reports: names.flatMap(of) }));
}

function dump(path, names, factor) {
  const [frameTable, traceTable] = [{ M: "#00: main (m.rs:1)" }, {}];
  const blockList = names.map((name, at) => {
    frameTable[`F${at}`] = `#00: ${name} (${name}:${at})`;
    frameTable[`G${at}`] = `#00: <alloc::vec::Vec<${name}> as core::clone::Clone>::clone (vec.rs:${at})`;
    traceTable[`T${at}`] = [`G${at}`, `F${at}`, "M"];
    return { req: (1000 + at) * factor, alloc: `T${at}`, num: 3, ...(at % 3 ? { reps: [`T${at}`] } : {}) };
  });
  writeFileSync(path, JSON.stringify({ version: 5, invocation: { dmdEnvVar: names[1], mode: "dark-matter" }, blockList, traceTable, frameTable }));
}

/** Processes that answer only `hello`, each with one of the names. */
function processes(runtime, names) {
  names.forEach((name, at) => {
    const hello = { name, exe: `/bin/${name}`, requests: ["heap-snapshot", "dmd-dump", name.slice(0, 50)] };
    pretend(runtime, 4_200_000 + at, hello, (_, stream) => stream.end(`${JSON.stringify({ version: 1, error: name })}\n`));
  });
}

const in_ = (name) => join(folder, name);

/** Returns the deceiving texts of the page, in elements and attributes. */
const raw = (page) =>
  page.evaluate((pattern) => {
    const deceptive = new RegExp(pattern, "u");
    const found = [];
    const look = (where, text) => text && deceptive.test(text) && found.push(`${where}: ${JSON.stringify(text.slice(0, 80))}`);
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      // Line breaks of the page itself are allowed: in a list of advice, and in the files.
      if (["SCRIPT", "STYLE", "PRE"].includes(parent.tagName) || /^\s+$/.test(walker.currentNode.data)) continue;
      look(`<${parent.tagName} class="${parent.getAttribute("class")}">`, walker.currentNode.data);
    }
    for (const element of document.querySelectorAll("*")) {
      for (const name of ["title", "aria-label", "placeholder", "alt"]) {
        for (const line of (element.getAttribute(name) ?? "").split("\n")) look(`${element.tagName}[${name}]`, line);
      }
    }
    look("title", document.title);
    return found;
  }, DECEPTIVE);

/** Returns the elements that are wider than the visible part of the page. */
const wide = (page) =>
  page.evaluate(() => {
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth) found.push(`page: ${document.documentElement.scrollWidth}`);
    for (const selector of ["#side", "#main", "#main .scrolls", "#main .bar", ".top"]) {
      for (const element of document.querySelectorAll(selector)) {
        if (element.scrollWidth > element.clientWidth + 1) found.push(`${selector}: ${element.scrollWidth} in ${element.clientWidth}`);
      }
    }
    return found;
  });

test("no view shows deceiving characters, or grows with a name", async () => {
  processes(in_("runtime"), ["a\u202egnp\u200b", "esc\x1b[31m", "y".repeat(60_000)]);
  for (const [at, names] of [ALL, ALL.slice(0, -3)].entries()) {
    snapshot(in_(`evil${at}.fxsnapshot`), names);
    report(in_(`evil${at}.json`), names, at + 1);
    dump(in_(`evil-dmd${at}.json`), names, at + 1);
  }
  snapshot(in_("b\u202etohspans.fxsnapshot"), NAMES);
  report(in_("c\u202enosj\u200b.json"), NAMES, 3);
  const files = ["evil0.fxsnapshot", "evil1.fxsnapshot", "b\u202etohspans.fxsnapshot", "evil0.json", "evil1.json", "c\u202enosj\u200b.json", "evil-dmd0.json", "evil-dmd1.json"];
  const { page, faults, close, read } = await serve(...files.map(in_), { XDG_RUNTIME_DIR: in_("runtime") });
  await page.setViewportSize({ width: 1600, height: 900 });
  await read(3);
  /** Opens a view, waits until it shows the selected element, and checks the view. */
  const look = async (hash, selector, expected = "\\u{") => {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.waitForFunction(
      ([selector, expected]) => [...document.querySelectorAll(selector)].some((one) => `${one.textContent} ${one.getAttribute("title")} ${one.getAttribute("aria-label")}`.includes(expected)),
      [selector, expected],
      { timeout: 10_000 },
    ).catch((error) => {
      throw new Error(`${hash}: ${error.message}`);
    });
    assert.deepEqual(await raw(page), [], hash);
    assert.deepEqual(await wide(page), [], hash);
  };
  await look("#/", ".processes td");
  for (const by of ["type", "objectClass", "stack", "internalType", "filename"]) {
    await look(`#/memory/1/census?by=${by}&invert=0`, ".table .row .name", ["type", "filename"].includes(by) ? "" : "\\u{");
  }
  await look("#/memory/1/treemap?by=objectClass", "#main .box, #main [aria-label]");
  await look("#/memory/1/dominators", ".table .row .name");
  await look("#/memory/1/classes", ".table .row .name");
  await look("#/memory/1/suspects", ".table .row", "");
  await look("#/memory/1/search?q=e", ".table .row .name");
  await look("#/memory/3/census?by=objectClass", "#side a");
  // The paths of a node, as a list and as a graph.
  await look("#/memory/1/search?q=@0x66", ".table .row .name");
  await page.focus(".table .list");
  await page.waitForFunction(() => document.querySelector(".paths .path, .paths svg")?.textContent.includes("\\u{"));
  assert.deepEqual(await raw(page), []);
  await page.check(".paths input[type=checkbox]");
  await page.waitForSelector(".paths svg");
  assert.deepEqual(await raw(page), []);
  await look("#/diff/1/2?by=objectClass", "#side a", "");
  await look("#/generations/1/2?by=objectClass", "#main .sides, #main .bar", "");
  await look("#/report/1", ".row");
  await look("#/report/1?view=treemap", "#main *");
  await look("#/report/1?against=2", ".row", "");
  await look("#/series", ".series td, .series th, #main td");
  for (const view of ["table", "flame", "callers", "treemap"]) await look(`#/stacks/1?view=${view}`, "#main *");
  await look("#/stacks/1?view=table&suggest=1", "#main article", "");
  const twin = (await page.$$eval("#side a", (links) => links.map((link) => link.textContent))).filter((text) => text.includes("\\u{202e}"));
  assert.equal(twin.length, 2, "names of files");
  assert.equal(await page.evaluate(() => window.INJ), undefined);
  assert.deepEqual(faults, []);
  await close();
});
