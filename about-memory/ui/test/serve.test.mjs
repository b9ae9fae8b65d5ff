// The page of `about-memory serve`: every view by its address, by pointer and by keyboard.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { after, test } from "node:test";
import { golden, newPage, program } from "./browser.mjs";
import { end, serve, servers } from "./server.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
after(end);

test("the token leaves the address and a reload keeps the view", async () => {
  const { page, faults, close, read, go, rows, token } = await serve(heap("small-a.fxsnapshot"));
  assert.ok(!page.url().includes(token));
  await read(1);
  await go("#/memory/1/census?by=objectClass&sort=count&asc=1");
  // The number of visible rows depends on the height of the list, which is known only after the layout.
  const first = async () => (await rows()).slice(0, 10);
  const before = await first();
  assert.equal(before.length, 10);
  await page.reload();
  await page.waitForFunction(() => Number(document.documentElement.dataset.rows) > 0);
  assert.deepEqual(await first(), before);
  assert.deepEqual(faults, []);
  await close();
});

test("the aggregate opens, closes, filters and sorts by mouse and keyboard", async () => {
  const { page, faults, close, read, go, rows } = await serve(heap("small-a.fxsnapshot"));
  await read(1);
  await go("#/memory/1/census?by=type&invert=0");
  const closed = await rows();
  assert.match(closed[0], /▸/);
  await page.focus(".table .list");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((n) => Number(document.documentElement.dataset.rows) > n, closed.length);
  assert.match((await rows())[0], /▾/);
  assert.equal(await page.getAttribute("#row-1", "aria-level"), "2");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((n) => Number(document.documentElement.dataset.rows) === n, closed.length);
  await page.click("#row-0 .branch");
  await page.waitForFunction((n) => Number(document.documentElement.dataset.rows) > n, closed.length);
  await page.fill("#filter", "Function");
  await page.waitForFunction(() => location.hash.includes("filter=Function"));
  await page.waitForFunction(() => document.querySelectorAll(".table .row .name").length > 0);
  await page.fill("#filter", "no such name");
  await page.waitForFunction(() => document.getElementById("status").textContent === "No matches.");
  await go("#/memory/1/census?by=objectClass");
  await page.evaluate(() => delete document.documentElement.dataset.rows);
  await page.click(".heads button:nth-child(2)");
  await page.waitForFunction(() => location.hash.includes("sort=count"));
  await page.waitForFunction(() => Number(document.documentElement.dataset.rows) > 0);
  const counts = await page.$$eval(".table .row .number:nth-child(2) .value", (all) =>
    all.map((cell) => Number(cell.textContent.replaceAll(",", ""))),
  );
  assert.deepEqual(counts, [...counts].sort((a, b) => b - a));
  assert.deepEqual(faults, []);
  await close();
});

test("from a group to its nodes and their paths", async () => {
  const { page, faults, close, read, go } = await serve(heap("small-a.fxsnapshot"));
  await read(1);
  await go("#/memory/1/census?by=objectClass");
  await page.focus(".table .list");
  await page.keyboard.press("Home");
  await page.keyboard.press("i");
  await page.waitForFunction(() => location.hash.includes("individuals"));
  await page.waitForSelector(".paths[data-node] .path");
  assert.match(await page.textContent(".paths .path"), /@ 0x/);
  const first = await page.getAttribute(".paths", "data-node");
  await page.focus(".table .list");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction((old) => document.querySelector(".paths").dataset.node !== old, first);
  await page.click("text=Back to the aggregate");
  await page.waitForFunction(() => location.hash.includes("census?by=objectClass"));
  assert.deepEqual(faults, []);
  await close();
});

test("tree map, dominators, suspects, search and difference have addresses", async () => {
  const { page, faults, close, read, go, rows } = await serve(heap("small-a.fxsnapshot"), heap("medium.fxsnapshot"));
  await read(2);
  await page.evaluate(() => (location.hash = "#/memory/1/treemap"));
  await page.waitForFunction(() => Number(document.documentElement.dataset.boxes) > 5);
  for (const hash of ["#/memory/1/dominators", "#/memory/2/search?q=Function", "#/diff/1/2?by=objectClass"]) {
    await go(hash);
    assert.ok((await rows()).length > 3, hash);
  }
  assert.match(await page.textContent(".table .row .number.grow"), /\+/);
  await page.click("text=Swap");
  await page.waitForSelector(".table .row .number.shrink");
  await page.evaluate(() => (location.hash = "#/memory/1/suspects"));
  await page.waitForFunction(() => document.getElementById("status").textContent !== "");
  assert.equal(await page.getAttribute("#status", "class"), "");
  assert.deepEqual(faults, []);
  await close();
});

test("snapshots stand side by side, with the largest growth first", async () => {
  const { page, faults, close, read, go, rows } = await serve(heap("small-a.fxsnapshot"), heap("small-b.fxsnapshot"), heap("medium.fxsnapshot"));
  await read(3);
  await page.click("text=All snapshots side by side");
  await page.waitForFunction(() => location.hash === "#/generations/1/2/3");
  await go("#/generations/1/2/3?by=objectClass");
  const heads = await page.$$eval(".table .heads button", (all) => all.map((head) => head.textContent));
  assert.deepEqual(heads, ["Growth", "Snapshot 1", "Snapshot 2", "Snapshot 3", "Group"]);
  assert.ok((await rows()).length > 3);
  const numbers = await page.$$eval(".table .row", (all) => all.map((row) => [...row.querySelectorAll(".number")].map((cell) => Number(cell.title.replace(/[ B,]/g, "")))));
  for (const [growth, first, , last] of numbers) assert.equal(growth, last - first);
  assert.deepEqual(numbers.map(([growth]) => growth), numbers.map(([growth]) => growth).sort((a, b) => b - a));
  assert.match(await page.textContent(".table .row .number.grow"), /\+/);
  await page.click("button:has-text('Snapshot 2')");
  await page.waitForFunction(() => location.hash.includes("sort=in-1"));
  await page.waitForFunction(() => document.querySelector(".table .row"));
  // Removes the second snapshot from the view.
  await page.click("label:has-text('2. small-b')");
  await page.waitForFunction(() => location.hash.startsWith("#/generations/1/3?"));
  await page.waitForFunction(() => document.querySelectorAll(".table .heads button").length === 4);
  const download = page.waitForEvent("download");
  await page.selectOption("select.export", { label: "this view as JSON" });
  assert.equal((await download).suggestedFilename(), "generations.json");
  assert.deepEqual(faults, []);
  await close();
});

test("the menu exports and the buttons compare and remove", async () => {
  const { page, faults, close, read, go } = await serve(heap("small-a.fxsnapshot"), heap("medium.fxsnapshot"));
  await read(2);
  await go("#/memory/1/dominators");
  await page.waitForFunction(() => / rows/.test(document.getElementById("status").textContent));
  const status = await page.textContent("#status");
  for (const [value, name] of [["0", "dominators.tsv"], ["1", "heap-1.fxsnapshot"], ["2", "heap-1.heapsnapshot"], ["3", "heap-1.pb.gz"], ["4", "heap-1.speedscope.json"]]) {
    const download = page.waitForEvent("download");
    await page.selectOption("label:has-text('Export') select", value);
    assert.equal((await download).suggestedFilename(), name);
  }
  await page.waitForFunction((text) => document.getElementById("status").textContent === text, status);
  // The second computation starts while the first one runs.
  await page.evaluate(() => {
    const select = document.querySelector("select.export");
    for (const value of ["1", "2"]) {
      select.value = value;
      select.dispatchEvent(new Event("change"));
    }
  });
  await page.waitForFunction((text) => document.getElementById("status").textContent === text, status);
  await page.click("#side li:nth-child(1) button:has-text('Compare')");
  await page.evaluate(() => delete document.documentElement.dataset.rows);
  await page.click("#side li:nth-child(2) button:has-text('with this')");
  await page.waitForFunction(() => location.hash === "#/diff/1/2" && Number(document.documentElement.dataset.rows) > 0);
  await page.click("#side li:nth-child(2) button:has-text('×')");
  await read(1);
  await page.waitForFunction(() => document.getElementById("main").textContent.includes("no longer has this snapshot"));
  await page.keyboard.press("Control+ArrowDown");
  await page.waitForFunction(() => location.hash === "#/memory/1/census");
  assert.deepEqual(faults, []);
  await close();
});

test("reports, their difference and their series are exported", async () => {
  const { page, faults, close, exported, go } = await serve(golden("firefox/diff.a.json"), golden("firefox/diff.b.json"));
  await page.click("#side a[href='#/report/2']");
  await page.waitForSelector(".row.heading");
  const [name, file] = await exported("for Firefox and about-memory (.json.gz)");
  assert.equal(name, "memory-report-2.json.gz");
  assert.equal(JSON.parse(gunzipSync(file)).version, 1);
  assert.match(String((await exported("the text of about:memory (.txt)"))[1]), /MB \(100\.0%\) -- explicit/);
  assert.match(String((await exported("OpenMetrics (.om)"))[1]), /# EOF\n$/);
  assert.match(String((await exported("metrics for Prometheus (.prom)"))[1]), /memory_report_bytes\{/);
  await page.selectOption("#against", "1");
  await page.waitForFunction(() => document.querySelector("select.export")?.options.length === 4);
  assert.match(String((await exported("the text of about:memory (.txt)"))[1]), /-7\.00 MB .*shrinks/);
  await go("#/series?path=explicit&depth=1");
  assert.match(String((await exported("all rows as a table (.tsv)"))[1]), /^explicit\/shrinks\tBYTES\t\d+\t\d+$/m);
  const [trace, events] = await exported("counters for ui.perfetto.dev (.trace.json)");
  assert.equal(trace, "reports.trace.json");
  assert.ok(JSON.parse(events).traceEvents.some(({ name }) => name === "explicit/shrinks"));
  assert.deepEqual(faults, []);
  await close();
});

test("a report has the same lines as in the page of html", async () => {
  const { page, faults, close } = await serve(golden("firefox/sample.json.gz"));
  await page.click("#side a[href='#/report/1']");
  await page.waitForSelector(".row.heading");
  const lines = await page.$$eval(".row", (all) => all.map((row) => row.textContent));
  assert.ok(lines.some((line) => /MB \(100\.0%\) -- explicit/.test(line)));
  await page.fill("#filter", "no such path");
  await page.waitForFunction(() => document.querySelector(".list").textContent.includes("No results found."));
  await page.click("text=Treemap");
  await page.waitForFunction(() => location.hash.includes("view=treemap"));
  assert.deepEqual(faults, []);
  await close();
});

test("a dump has its stacks by kind, holder and caller", async () => {
  const { page, faults, close, exported } = await serve(golden("dmd/dark-matter-mixed.json"), "--no-fix-stacks");
  await page.click("#side a[href='#/stacks/1']");
  await page.waitForSelector(".summary .answer");
  const whole = await page.textContent(".above .sum");
  const kinds = await page.$$eval("#kind option", (all) => all.map((one) => one.textContent));
  assert.deepEqual(kinds, ["All", "Twice-reported", "Unreported", "Once-reported", "reported by dmd_report"]);
  const blocks = async () => Number(/ ([\d,]+) blocks?/.exec(await page.textContent(".above .sum"))[1].replaceAll(",", ""));
  const all = await blocks();
  let sum = 0;
  for (const kind of ["1", "2", "3"]) {
    const before = await page.textContent(".above .sum");
    await page.selectOption("#kind", kind);
    await page.waitForFunction((old) => document.querySelector(".above .sum").textContent !== old, before);
    sum += await blocks();
  }
  assert.equal(sum, all);
  assert.match(page.url(), /kind=3/);
  // The address restores the same kind and view.
  await page.click("text=Callers");
  await page.waitForSelector(".callers .row");
  await page.reload();
  await page.waitForSelector(".callers .row");
  assert.equal(await page.inputValue("#kind"), "3");
  for (const [title, name, start] of [
    ["pprof (.pb.gz)", "stacks-1.pb.gz", /^\x1f/],
    ["speedscope (.speedscope.json)", "stacks-1.speedscope.json", /speedscope\.app/],
    ["heaptrack (.heaptrack)", "stacks-1.heaptrack", /^v \d+ 2\n/],
    ["DHAT (.dhat.json)", "stacks-1.dhat.json", /"dhatFileVersion":2/],
    ["the Firefox Profiler (.profile.json)", "stacks-1.profile.json", /"preprocessedProfileVersion"/],
    ["folded stacks (.folded)", "stacks-1.folded", / \d+\n$/],
  ]) {
    const [found, file] = await exported(title);
    assert.equal(found, name);
    assert.match(file.toString("latin1"), start);
  }
  await page.selectOption("#kind", "0");
  await page.waitForFunction((old) => document.querySelector(".above .sum").textContent === old, whole);
  assert.deepEqual(faults, []);
  await close();
});

test("callers and callees lead from one function to the next", async () => {
  const { page, faults, close } = await serve(golden("dmd/dark-matter-mixed.json"), "--no-fix-stacks");
  await page.evaluate(() => (location.hash = "#/stacks/1?view=callers"));
  await page.waitForSelector(".callers .row");
  await page.focus(".callers .list");
  const chosen = () => page.textContent(".callers h2");
  // Moves down to a function that has a caller.
  for (let step = 0; step < 30 && (await page.$(".callers section:first-of-type button")) === null; step++) {
    await page.keyboard.press("ArrowDown");
  }
  const callee = await chosen();
  const caller = await page.textContent(".callers section:first-of-type button .name");
  await page.click(".callers section:first-of-type button");
  assert.equal(await chosen(), caller);
  const callees = await page.$$eval(".callers section:last-of-type .name", (all) => all.map((one) => one.textContent));
  assert.ok(callees.includes(callee), `${callee} in ${callees}`);
  assert.deepEqual(faults, []);
  await close();
});

test("a recording keeps its range in the address", async () => {
  const { page, faults, close, exported } = await serve(golden("heap/before.dmdrec"), "--no-fix-stacks");
  await page.click("#side a[href='#/stacks/1']");
  await page.waitForSelector(".summary .answer");
  await page.click("#time-end");
  await page.waitForFunction(() => location.hash.includes("to=200"));
  const live = async () => {
    const lines = String((await exported("folded stacks (.folded)"))[1]).trim().split("\n");
    return lines.reduce((sum, line) => sum + Number(/ (\d+)$/.exec(line)[1]), 0);
  };
  const atEnd = await live();
  await page.click("#time-peak");
  await page.waitForFunction(() => !location.hash.includes("to=200"));
  const atPeak = await live();
  assert.ok(atPeak > atEnd && atEnd > 0, `${atPeak} ${atEnd}`);
  await page.click("#time-end");
  await page.waitForFunction(() => location.hash.includes("to=200"));
  await page.check("input[value='allocated']");
  await page.waitForFunction(() => location.hash.includes("shown=allocated"));
  await page.selectOption("select.export", { label: "folded stacks (.folded)" });
  await page.waitForFunction(() => /only what is alive at the end/.test(document.getElementById("status").textContent));
  assert.equal((await exported("DHAT (.dhat.json)"))[0], "stacks-1.dhat.json");
  const shown = await page.textContent(".time .sum");
  await page.reload();
  await page.waitForFunction((text) => document.querySelector(".time .sum")?.textContent === text, shown);
  assert.deepEqual(faults, []);
  await close();
});

test("two reports are compared in one address", async () => {
  const { page, faults, close } = await serve(golden("firefox/diff.a.json"), golden("firefox/diff.b.json"));
  await page.click("#side a[href='#/report/2']");
  await page.waitForSelector(".row.heading");
  assert.equal(await page.isVisible("#live"), false);
  await page.selectOption("#against", "1");
  await page.waitForFunction(() => location.hash.includes("against=1"));
  await page.waitForFunction(() => [...document.querySelectorAll(".row")].some((row) => /-7\.00 MB .*shrinks/.test(row.textContent)));
  assert.deepEqual(faults, []);
  await close();
});

test("all reports are lines over time", async () => {
  const { page, faults, close, go } = await serve(golden("firefox/diff.a.json"), golden("firefox/diff.b.json"));
  await page.click("text=All reports over time");
  await page.waitForSelector(".series svg");
  await go("#/series?path=explicit&depth=1");
  const growth = await page.$$eval(".series tr", (all) => all.map((row) => [row.firstChild.textContent.trim(), row.lastChild.textContent]));
  assert.deepEqual(growth.find(([path]) => path === "explicit/shrinks"), ["explicit/shrinks", "-7.00 MiB"]);
  assert.equal(await page.$$eval(".series polyline", (all) => all.length), 6);
  assert.deepEqual(faults, []);
  await close();
});

const examples = process.env.EXAMPLES ?? join(dirname(program ?? ""), "examples");
const codeSearch = join(examples, "code_search");
const victim = join(examples, "typed_heap_victim");
const missing = [codeSearch, victim].filter((example) => !existsSync(example));
const noExample = missing.length === 0 ? false : `missing: ${missing.join(", ")}`;

test("a process is followed, with a mark and a line of its memory", { skip: noExample }, async () => {
  const sources = fileURLToPath(new URL("../src", import.meta.url));
  const child = spawn(codeSearch, [sources, "--serve"], { stdio: ["pipe", "pipe", "inherit"] });
  servers.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => String(part).includes("about-memory") && ready()));
  const { page, faults, close, exported } = await serve();
  const row = page.locator(".processes tr", { hasText: String(child.pid) });
  await row.waitFor();
  await page.waitForFunction(() => document.querySelector(".sparkline polyline")?.getAttribute("points").includes(" "));
  assert.match(await row.locator(".sparkline").getAttribute("aria-label"), /^From .* to /);
  const [name, table] = await exported("this list as a table (.tsv)");
  assert.equal(name, "processes.tsv");
  assert.match(String(table), new RegExp(`^${child.pid}\\t.+\\t\\d+\\t\\d+$`, "m"));
  await row.getByText("Measure", { exact: true }).click();
  await page.waitForSelector("#live");
  await page.check("#live");
  await page.waitForFunction(() => Number(document.getElementById("main").dataset.looks) > 1);
  assert.match(page.url(), /live=1/);
  // The reader switches "live" off and on during a measurement. The updates continue, and only one measurement runs at
  // a time.
  let [now, most, looks] = [0, 0, 0];
  await page.route("**/api/measure", async (route) => {
    most = Math.max(most, ++now);
    looks++;
    await new Promise((later) => setTimeout(later, 300));
    now--;
    await route.continue();
  });
  await page.waitForRequest("**/api/measure");
  await page.uncheck("#live");
  await page.check("#live");
  await page.waitForFunction((n) => Number(document.getElementById("main").dataset.looks) > n, 2 + (await page.evaluate(() => Number(document.getElementById("main").dataset.looks))));
  assert.equal(most, 1, `${looks} looks`);
  await page.unroute("**/api/measure");
  const reports = () => page.$$eval("#side a[href*='#/report/']", (all) => all.length);
  assert.equal(await reports(), 1);
  await page.click("text=Mark");
  await page.waitForFunction(() => location.hash.includes("against="));
  await page.waitForSelector(".row.heading");
  await page.waitForFunction(() => document.querySelectorAll("#side a[href*='#/report/']").length === 2);
  assert.equal(await page.isChecked("#live"), true);
  assert.deepEqual(faults, []);
  await close();
});

test("a row of a report leads to the stacks of its blocks", { skip: noExample }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "stacks-"));
  const sources = fileURLToPath(new URL("../src", import.meta.url));
  const dump = join(folder, "dmd.json.gz");
  const env = { ...process.env, DMD: "--stacks=full --quiet" };
  assert.equal(spawnSync(codeSearch, [sources, "--dmd", dump], { stdio: ["ignore", "ignore", "inherit"], env }).status, 0);
  const child = spawn(codeSearch, [sources, "--serve"], { stdio: ["pipe", "pipe", "inherit"] });
  servers.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => String(part).includes("about-memory") && ready()));
  const { page, faults, close } = await serve(dump);
  await page.locator(".processes tr", { hasText: String(child.pid) }).getByText("Measure", { exact: true }).click();
  await page.waitForSelector("#to-stacks");
  await page.locator("[role=treeitem]", { hasText: "── interner" }).click();
  await page.selectOption("#to-stacks", { index: 1 });
  await page.waitForFunction(() => location.hash.startsWith("#/stacks/1"));
  const chosen = () => page.$eval("#kind", (kind) => kind.selectedOptions[0].textContent);
  await page.waitForFunction(() => document.querySelector("#kind") && document.querySelector("#kind").value !== "0");
  assert.match(await chosen(), /^reported by explicit\/search\/interner$/);
  assert.match(await page.textContent(".sum"), / [KM]iB in [\d,]+ blocks$/);
  // The address keeps the row. Blocks without a reporter are unreported.
  await page.reload();
  await page.waitForSelector("#kind");
  assert.match(await chosen(), /^reported by explicit\/search\/interner$/);
  await page.evaluate(() => (location.hash = "#/stacks/1?reporter=explicit/heap-unclassified/code_search"));
  await page.waitForFunction(() => document.querySelector("#kind")?.selectedOptions[0]?.textContent === "Unreported");
  assert.deepEqual(faults, []);
  await close();
  rmSync(folder, { recursive: true });
});

test("a process without a derive shows its types, fields and waste", { skip: noExample }, async () => {
  const env = { ...process.env, DMD: "--stacks=full --quiet", ABOUT_MEMORY: "listen" };
  const child = spawn(victim, ["/dev/null"], { stdio: ["pipe", "pipe", "inherit"], env });
  servers.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => String(part).includes("ready") && ready()));
  const { page, faults, close, read, go } = await serve();
  const row = page.locator(".processes tr", { hasText: String(child.pid) });
  await row.waitFor();
  await row.locator(".menu summary").click();
  await row.getByText("Types", { exact: true }).click();
  await read(1);
  await page.click("#side li a[href='#/memory/1/types']");
  const lines = () => page.$$eval(".types tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  await page.waitForSelector(".types tr a");
  assert.match(await page.textContent(".types .summary"), /^[\d.]+ KiB in \d+ blocks; (9\d|100)\.\d\d% has a type\. \d+ of \d+ pointers/);
  const users = (await lines()).find(([, , , what]) => what === "[typed_heap_victim::User]");
  assert.deepEqual([users[0], users[2]], ["488 B", "1"]);
  const choose = async (table) => {
    await page.selectOption(".types select", table);
    await page.waitForFunction((table) => location.hash.endsWith(`by=${table}`), table);
    return (await lines()).map(([bytes, , blocks, what]) => `${bytes} ${blocks} ${what}`);
  };
  const waste = await choose("waste");
  // The vector has room for 10 users of 48 bytes, and 4 of them are used.
  assert.ok(waste.some((line) => line.endsWith("[typed_heap_victim::User]: capacity beyond length of 480 B, 40% full")), waste.join("\n"));
  const fields = await choose("field");
  assert.ok(fields.some((line) => line.endsWith(" 49 typed_heap_victim::Node.next.Some")), fields.join("\n"));
  // A reload keeps the table. A type links to its blocks.
  await page.reload();
  await page.waitForSelector(".types select");
  assert.equal(await page.inputValue(".types select"), "field");
  await go("#/memory/1/types?by=type");
  await page.click(".types a:text-is('typed_heap_victim::Copies')");
  await page.waitForSelector(".table .row");
  assert.match(await page.textContent(".table .row"), /24 B.*typed_heap_victim::Copies/);
  // A table of pointers has no bytes. It links to the blocks of the type that the pointers name.
  await page.route("**/api/types/1", async (route) => {
    const answer = await (await route.fetch()).json();
    const row = { bytes: 0, blocks: 1234, text: "A, and the stack names B", of_type: "A" };
    answer.tables.push({ name: "disagreement", title: "Disagreements", counts: "pointers", whole: 0, rows: [row], left_out: 0 });
    await route.fulfill({ json: answer });
  });
  await go("#/memory/1/types?by=disagreement");
  await page.waitForSelector(".types a:text-is('A, and the stack names B')");
  assert.deepEqual(await lines(), [["Pointers", "What"], ["1,234", "A, and the stack names B"]]);
  await page.click(".types a");
  await page.waitForFunction(() => location.hash.includes("filter=A"));
  await page.unroute("**/api/types/1");
  assert.deepEqual(faults, []);
  await close();
});

test("reports, dumps and recordings are loaded, and two are compared", async () => {
  const { page, faults, close } = await serve();
  const [one, two] = [page.locator("#side input[type=file]").nth(0), page.locator("#side input[type=file]").nth(1)];
  await one.setInputFiles(golden("firefox/sample.json.gz"));
  await page.waitForFunction(() => location.hash === "#/report/1" && document.querySelector(".row.heading"));
  assert.equal(await page.title(), "about:memory (sample.json.gz)");
  await page.fill("#filter", "^explicit/(js|heap)");
  await page.check("#regex");
  await page.waitForFunction(() => location.hash.includes("regex=1") && !document.querySelector(".list").textContent.includes("No results found."));
  await page.fill("#filter", "(");
  await page.waitForFunction(() => document.getElementById("status").className === "error");
  // As in about:memory, two files are chosen one after the other.
  await two.setInputFiles(golden("firefox/diff.a.json"));
  await page.waitForFunction(() => /baseline/.test(document.getElementById("status").textContent));
  await page.locator("#side input[type=file]").nth(1).setInputFiles(golden("firefox/diff.b.json"));
  await page.waitForFunction(() => location.hash === "#/report/3?against=2");
  await page.waitForFunction(() => [...document.querySelectorAll(".row")].some((row) => /-7\.00 MB .*shrinks/.test(row.textContent)));
  assert.equal(await page.title(), "about:memory (diff of diff.a.json and diff.b.json)");
  // Dumps of DMD have the same extension as reports.
  for (const [at, name] of ["diff-live-1.json", "diff-live-2.json"].entries()) {
    await page.locator("#side input[type=file]").nth(0).setInputFiles(golden(`dmd/${name}`));
    await page.waitForFunction((id) => location.hash.startsWith(`#/stacks/${id}`) && document.querySelector(".summary .answer"), at + 1);
  }
  await page.selectOption("#since", "1");
  await page.waitForFunction(() => location.hash.startsWith("#/stacks/3") && document.querySelector(".summary .answer"));
  await page.click("#main .tabs button:has-text('Table')");
  assert.match(await page.textContent(".above"), /before: diff-live-1\.json · after: diff-live-2\.json/);
  const rows = async (which) => {
    await page.selectOption("select[aria-label='Changes']", which);
    return Number(/^(\d+)/.exec(await page.textContent(".table .about"))[1]);
  };
  const [all, added, removed, changed] = [await rows("all"), await rows("new"), await rows("removed"), await rows("changed")];
  assert.ok(all >= changed && changed >= added + removed && changed > 0, [all, added, removed, changed].join(" "));
  await page.locator("#side input[type=file]").nth(0).setInputFiles(golden("heap/before.dmdrec"));
  await page.waitForFunction(() => location.hash.startsWith("#/stacks/4") && document.querySelector(".time svg"));
  await page.locator("#side input[type=file]").nth(0).setInputFiles({ name: "bad.json", mimeType: "application/json", buffer: Buffer.from("no report") });
  // The page shows the reasons for both kinds of file.
  const wrong = /^Not a report: bad\.json: .+\. Not a dump or a recording of DMD: bad\.json: .+\.$/;
  await page.waitForFunction((wrong) => new RegExp(wrong).test(document.getElementById("status").textContent), wrong.source).catch(async () => assert.match(await page.textContent("#status"), wrong));
  // The browser reports only the refused files as errors.
  assert.deepEqual(faults.filter((fault) => !/status of 409/.test(fault)), []);
  await close();
});

test("paths are requested only for the node on which the focus rests", async () => {
  const { page, faults, close, read, go } = await serve(heap("small-a.fxsnapshot"));
  await read(1);
  await go("#/memory/1/dominators");
  await page.waitForSelector(".paths[data-node] .path");
  const asked = [];
  page.on("request", (request) => request.postData()?.includes('"view":"paths"') && asked.push(request));
  await page.focus(".table .list");
  for (let step = 0; step < 20; step++) await page.keyboard.press("ArrowDown", { delay: 0 });
  const last = await page.evaluate(() => Number.parseInt(document.querySelector(".row.active .address").textContent.trim().slice(2), 16));
  await page.waitForFunction((node) => document.querySelector(".paths").dataset.node === String(node), last);
  // Firefox computes ten paths for each node that it fetches.
  assert.ok(asked.length < 10, String(asked.length));
  assert.deepEqual(faults, []);
  await close();
});

test("without processes the page explains how to start one", async () => {
  const { page, faults, close } = await serve();
  // Firefox's panel throws an error here.
  await page.keyboard.press("Control+ArrowUp");
  await page.waitForFunction(() => /ABOUT_MEMORY=listen|Measure/.test(document.getElementById("main").textContent));
  assert.deepEqual(faults, []);
  await close();
});
