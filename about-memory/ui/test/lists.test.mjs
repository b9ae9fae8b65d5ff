// A page shows changes of the server that another page or a process makes.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { golden, program } from "./browser.mjs";
import { InChromium } from "./both.mjs";
import { inBoth, start } from "./in_both.mjs";
import { pretend } from "./process.mjs";
import { end, serve } from "./server.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
const examples = process.env.EXAMPLES ?? join(dirname(program ?? ""), "examples");
const onRequest = join(examples, "on_request");
after(end);

/** Sends a request as another page. */
const elsewhere = (b, method, path, body, type = "application/json") =>
  b.run(`return (async () => {
    const headers = { Authorization: "Bearer " + sessionStorage.getItem("about-memory-token"), "Content-Type": arguments[3] };
    return (await fetch("/api/" + arguments[1], { method: arguments[0], headers, body: arguments[2] })).json();
  })()`.replaceAll(/arguments\[(\d)\]/g, "args[$1]").replace("return (async", "const args = arguments; return (async"), method, path, body, type);

inBoth("lists follow other pages, and the reader's input stays", [golden("firefox/diff.a.json"), golden("firefox/diff.b.json"), golden("dmd/diff-live-1.json"), golden("dmd/diff-live-2.json"), "--no-fix-stacks"], async (b) => {
  // Prepares a report: one row is open, another row is active, and a half-typed filter has the focus.
  await b.go("#/report/1");
  await b.until("document.querySelector('.row.heading')");
  await b.focus(".list");
  await b.key("End");
  await b.run("document.querySelector('#filter').focus(); document.querySelector('#filter').value = 'half'; window.field = document.querySelector('#filter'); window.row = document.querySelector('.row.active'); document.querySelector('#side').scrollTop = 30");
  const side = await b.run("return document.querySelector('#side').scrollTop");
  const count = () => b.run("return document.querySelectorAll(\"#side a[href^='#/report/']\").length");
  assert.equal(await count(), 2);
  await elsewhere(b, "POST", "compare", JSON.stringify({ baseline: 1, comparison: 2 }));
  await b.until("document.querySelectorAll(\"#side a[href^='#/report/']\").length === 3");
  assert.deepEqual(await b.run("return [...document.querySelector('#against').options].map((one) => one.value)"), ["", "2", "3"]);
  assert.deepEqual(await b.run("return [window.field.isConnected, window.field.value, document.activeElement === window.field, window.row.isConnected, document.querySelector('#side').scrollTop]"), [true, "half", true, true, side]);
  // Stacks: the list of stacks to compare with.
  await b.go("#/stacks/2?view=table");
  await b.until("document.querySelector('.table .row .name') && document.querySelector('#since')");
  const others = () => b.run("return [...document.querySelector('#since').options].map((one) => one.value)");
  assert.deepEqual(await others(), ["", "1"]);
  const dump = readFileSync(golden("dmd/diff-live-1.json"), "utf8");
  await b.run("window.list = document.querySelector('.table .list'); document.querySelector('#since').focus()");
  await elsewhere(b, "PUT", "stacks?title=third", dump, "application/octet-stream");
  await b.until("document.querySelectorAll(\"#side a[href^='#/stacks/']\").length === 3");
  assert.deepEqual(await others(), ["", "1", "3"]);
  assert.deepEqual(await b.run("return [window.list.isConnected, document.activeElement.id]"), [true, "since"]);
  // Reports over time: one more column appears.
  await b.rows("#/series?path=explicit");
  await elsewhere(b, "PUT", "reports?title=late", readFileSync(golden("firefox/diff.a.json"), "utf8"), "application/octet-stream");
  await b.until("document.querySelectorAll('.series th').length === 5");
});

/** More pages of one browser. Each page runs steps and can be closed. */
async function morePages(b, page, address, count) {
  const all = [{ run: (script) => b.run(script), close: () => page.close() }];
  if (b.name === "Chromium") {
    for (let more = 0; more < count; more++) {
      const another = await page.context().newPage();
      await another.goto(address);
      const own = new InChromium(another);
      all.push({ run: (script) => own.run(script), close: () => another.close() });
    }
    return all;
  }
  const { firefox } = b;
  const tab = (handle) => {
    const into = () => firefox.ask("WebDriver:SwitchToWindow", { handle, focus: false });
    return {
      run: async (script) => (await into(), firefox.run(script)),
      close: async () => (await into(), firefox.ask("WebDriver:CloseWindow", {})),
    };
  };
  const first = await firefox.ask("WebDriver:GetWindowHandle", {});
  for (let more = 0; more < count; more++) {
    const { handle } = await firefox.askAll("WebDriver:NewWindow", { type: "tab", focus: false });
    await firefox.ask("WebDriver:SwitchToWindow", { handle, focus: false });
    await firefox.go(address);
    all.push(tab(handle));
  }
  all[0] = tab(first);
  return all;
}

/** A browser has six connections to a server, which all of its pages share. */
inBoth("seven pages of one browser show the same, even if one is closed", [golden("firefox/diff.a.json"), golden("firefox/diff.b.json")], async (b, { page, origin, token }) => {
  const pages = await morePages(b, page, `${origin}/#token=${token}`, 6);
  /**
   * Waits until an expression is true in each page, one page after the other, because a browser runs one script at a
   * time.
   */
  const until = async (expression) => {
    const end = Date.now() + 30_000;
    for (const [place, one] of pages.entries()) {
      while (!(await one.run(`return Boolean(${expression})`))) {
        assert.ok(Date.now() < end, `page ${place}: never true: ${expression}`);
        await new Promise((next) => setTimeout(next, 20));
      }
    }
  };
  await until("document.documentElement.dataset.state === 'ready'");
  const readers = async () => {
    const reads = [];
    for (const one of pages) reads.push(await one.run("return document.documentElement.dataset.reads === 'events'"));
    return reads.flatMap((reads, place) => (reads ? [place] : []));
  };
  assert.deepEqual(await readers(), [0]);
  const compare = (from) =>
    from.run(`return (async () => {
      const headers = { Authorization: "Bearer " + sessionStorage.getItem("about-memory-token"), "Content-Type": "application/json" };
      await fetch("/api/compare", { method: "POST", headers, body: JSON.stringify({ baseline: 1, comparison: 2 }) });
    })()`);
  const have = (count) => until(`document.querySelectorAll("#side a[href^='#/report/']").length === ${count}`);
  await compare(pages[6]);
  await have(3);
  // The page that reads the events is closed. Another page must then read them.
  await pages.shift().close();
  await compare(pages[3]);
  await have(4);
  assert.equal((await readers()).length, 1);
  await compare(pages[0]);
  await have(5);
  // One page stays open for the later steps.
  while (pages.length > 1) await pages.pop().close();
  await pages[0].run("return 0");
});

/** A report of this many megabytes. */
const report = (mb) => ({ version: 1, hasMozMallocUsableSize: true, reports: [{ process: "Main Process (pid 1)", path: "explicit/cache", kind: 1, units: 0, amount: mb << 20, description: "A cache." }] });
let mb = 0;
const growing = () => pretend("growing", () => report((mb += 4)), serve);

inBoth("measurements have an axis of time, with the mark, stacks and snapshots", [], async (b) => {
  mb = 4;
  const row = `.processes tr:has(input[aria-label$=" ${process.pid}"])`;
  await b.press("Measure", row);
  await b.until("document.querySelector('#live')");
  await b.press("Mark", "#main");
  await b.until("location.hash.includes('against=') && Number(document.getElementById('main').dataset.looks) > 1");
  // Stacks that a page sends later.
  await elsewhere(b, "PUT", "stacks?title=dump", readFileSync(golden("dmd/diff-live-1.json"), "utf8"), "application/octet-stream");
  await new Promise((later) => setTimeout(later, 300));
  await b.go("#/");
  await b.press("Measure", row);
  await b.until("document.querySelector('#live')");
  await b.rows("#/series?path=explicit/cache");
  const texts = await b.run("return [...document.querySelectorAll('.series svg > text')].map((one) => one.firstChild.textContent)");
  assert.ok(texts.includes("0 B") && texts.filter((text) => / MiB$/.test(text)).length >= 3, texts.join(", "));
  assert.ok(texts.some((text) => /^\d?\d:\d\d:\d\d/.test(text)), texts.join(", "));
  const marks = await b.run("return [...document.querySelectorAll('.series svg a')].map((one) => [one.getAttribute('href'), one.getAttribute('aria-label'), Number(one.querySelector('line').getAttribute('x1'))])");
  const [mark, stacks] = [marks.find(([to]) => to === "#/report/2"), marks.find(([to]) => to === "#/stacks/1")];
  assert.match(mark[1], /^mark 2: mark of process \d+$/);
  assert.match(stacks[1], /^stacks 1: dump at /);
  // The mark is at its report. The dump is after the mark and before the last report.
  const dots = await b.run("return [...document.querySelectorAll('.series svg circle')].map((one) => [one.querySelector('title').textContent, Number(one.getAttribute('cx'))])");
  assert.equal(dots.length, 3);
  const [, at] = dots.find(([title]) => / in 2\. mark of process /.test(title));
  assert.ok(Math.abs(at - mark[2]) < 1);
  // Both ends of the axis show their time, and the texts do not overlap.
  const places = await b.run("return [...document.querySelectorAll('.series svg > text')].filter((one) => /^\\d?\\d:\\d\\d/.test(one.firstChild.textContent)).map((one) => { const { left, right } = one.getBoundingClientRect(); return [left, right, Number(one.getAttribute('x'))]; })");
  assert.deepEqual([places[0][2], places.at(-1)[2]], [Math.min(...dots.map(([, x]) => x)), Math.max(...dots.map(([, x]) => x))]);
  assert.ok(places.every(([left], at) => at === 0 || left > places[at - 1][1]), JSON.stringify(places));
  assert.ok(stacks[2] > mark[2] && stacks[2] < Math.max(...dots.map(([, x]) => x)), JSON.stringify([mark, stacks, dots]));
  await b.run("document.querySelector(\".series svg a[href='#/stacks/1']\").dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, view: window }))");
  await b.until("document.querySelector('.summary .answer')");
}, { serve: growing });

inBoth("own displays of one breakdown are two, and the tree tools of a report are in its address", [golden("firefox/sample.json.gz"), heap("small-a.fxsnapshot"), "--displays", displays()], async (b) => {
  await b.until("document.querySelector(\"#side a[href^='#/memory/']\")");
  const menu = "[...document.querySelectorAll('#main .bar select')].find((one) => one.parentElement.textContent.startsWith('Group by'))";
  const shown = () => b.run(`const menu = ${menu}; return [menu.selectedOptions[0].textContent, menu.parentElement.title, [...menu.options].filter((one) => one.title).length]`);
  await b.rows("#/memory/1/census");
  for (const [name, text, about] of [["display:down", "File", "By file"], ["display:up", "File, inverted", "From the file up"], ["display:down", "File", "By file"]]) {
    await b.run(`const menu = ${menu}; menu.value = arguments[0]; menu.dispatchEvent(new Event("change"))`, name);
    await b.until("location.hash.includes(`invert=${arguments[0]}`)", name === "display:up" ? "1" : "0");
    await b.until("document.querySelector('.table .row .name')");
    assert.deepEqual(await shown(), [text, about, 2]);
  }

  // Expand all, collapse all, and small entries. All must stay after a reload.
  const lines = () => b.run("return document.querySelector('.list .spacer').offsetHeight / 18");
  const reload = async () => {
    await b.run("window.isOld = true; setTimeout(() => location.reload())");
    await b.until("!window.isOld && document.querySelector('.row.heading')");
  };
  await b.go("#/report/1");
  await b.until("document.querySelector('.row.heading')");
  const usual = await lines();
  await b.press("Collapse all", "#main");
  const closed = await lines();
  assert.ok(closed < usual);
  await reload();
  assert.equal(await lines(), closed);
  await b.press("Expand all", "#main");
  const open = await lines();
  assert.ok(open > usual);
  assert.match(await b.run("return location.hash"), /all=1/);
  await b.click("#hide-tiny");
  await b.until("location.hash.includes('tiny=1')");
  assert.equal(await b.run("return /\\(\\d+ tiny\\)/.test(document.querySelector('.list').textContent)"), false);
  const all = await lines();
  await reload();
  assert.equal(await lines(), all);
  assert.equal(await b.run("return document.querySelector('#hide-tiny').checked"), false);
});

/** Writes a file with two displays. Their breakdowns are equal, and one of them is inverted. */
function displays() {
  const folder = mkdtempSync(join(tmpdir(), "displays-"));
  after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "displays.json");
  const of = (displayName, tooltip, inverted) => ({ displayName, tooltip, inverted, breakdown: { by: "filename" } });
  writeFileSync(file, JSON.stringify({ census: { down: of("File", "By file", false), up: of("File, inverted", "From the file up", true) } }));
  return file;
}

const recordings = mkdtempSync(join(tmpdir(), "recordings-"));
after(() => rmSync(recordings, { recursive: true }));

inBoth("a recording that cannot be opened is saved and discarded; a program gets an address without the token", [golden("dmd/dark-matter-mixed.json"), "--no-fix-stacks", { TMPDIR: recordings }], async (b) => {
  const child = await start(onRequest, [], { ABOUT_MEMORY: "listen" });
  const row = `[...document.querySelectorAll('.processes tr')].find((one) => one.cells[2]?.textContent === '${child.pid}')`;
  const press = (text) => b.run(`[...${row}.querySelectorAll('button')].find((one) => one.textContent === arguments[0]).click()`, text);
  await b.until(row);
  await b.run(`${row}.querySelector('.recording input').click()`);
  await b.until(`${row}?.querySelector('.recording.on input')?.disabled === false`);
  // In the meantime, a file that is not a recording replaces the recording.
  const all = readdirSync(recordings, { recursive: true }).filter((name) => name.endsWith("recording.dmdrec"));
  assert.equal(all.length, 1);
  const file = join(recordings, all[0]);
  rmSync(file);
  writeFileSync(file, "no recording");
  await b.run(`${row}.querySelector('.recording input').click()`);
  await b.until(`${row}?.textContent.includes("Its recording cannot be opened")`);
  assert.equal(await b.run(`return ${row}.querySelector('.recording')`), null);
  // Errors are on separate lines, without buttons beside them.
  const beside = await b.run(`const { top, bottom } = ${row}.querySelector('.error').getBoundingClientRect(); return [...${row}.querySelectorAll('button')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().bottom > top && one.getBoundingClientRect().top < bottom).map((one) => one.textContent)`);
  assert.deepEqual(beside, []);
  await press("Open again");
  await b.until("document.getElementById('status').className === 'error'");
  await press("Save recording");
  assert.deepEqual(await b.kept(), { size: 12, name: `recording-${child.pid}.dmdrec` });
  assert.match(await b.run(`return [...${row}.querySelectorAll('button')].find((one) => one.textContent === 'Discard recording').title`), /is lost/);
  await press("Discard recording");
  await b.until(`${row}?.querySelector('.recording:not(.on) input')`);
  assert.equal(existsSync(file), false);
  child.kill("SIGTERM");
  // The address for `go tool pprof` returns the file once.
  await b.go("#/stacks/1");
  await b.until("document.querySelector('select.export')");
  await b.run("const menu = document.querySelector('select.export'); menu.value = [...menu.options].find((one) => one.textContent.startsWith('an address')).value; menu.dispatchEvent(new Event('change'))");
  await b.until("document.getElementById('status').textContent.includes('go tool pprof http')");
  const address = /go tool pprof (http:\S+)/.exec(await b.status())[1];
  const first = await fetch(address);
  assert.deepEqual([first.status, Buffer.from(await first.arrayBuffer()).readUInt16BE(0)], [200, 0x1f8b]);
  assert.equal((await fetch(address)).status, 404);
}, { skip: existsSync(onRequest) ? false : `missing: ${onRequest}`, mayFail: /status of 409/ });
