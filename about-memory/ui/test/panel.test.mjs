// Every action of Firefox's Memory panel, Firefox's answers, and hostile files, tested on the page in Chromium and in
// Firefox.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { program } from "./browser.mjs";
import { inBoth, start } from "./in_both.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
const examples = process.env.EXAMPLES ?? join(dirname(program ?? ""), "examples");
const [codeSearch, onRequest] = ["code_search", "on_request"].map((name) => join(examples, name));
const missing = [codeSearch, onRequest].filter((example) => !existsSync(example));
const noExample = missing.length === 0 ? false : `missing: ${missing.join(", ")}`;

/** Waits until the list contains this many loaded snapshots. */
const read = (browser, count) => browser.until("document.querySelectorAll(`#side li a[href*='#/memory/']`).length === arguments[0]", count);

/** Returns all changes of states that the server has sent so far, as `KIND STATE`. */
async function events(browser) {
  const text = await browser.run(`
    const headers = { Authorization: "Bearer " + sessionStorage.getItem("about-memory-token") };
    const { seq } = await (await fetch("/api/state", { headers })).json();
    const stop = new AbortController();
    const reader = (await fetch("/api/events?since=0", { headers, signal: stop.signal })).body.getReader();
    let text = "";
    while (!text.includes("id: " + seq + "\\n")) text += new TextDecoder().decode((await reader.read()).value);
    stop.abort();
    return text;`.replace(/^/, "return (async () => {") + "})()");
  const data = [...text.matchAll(/^data: (\{"id.*\}|\{.*"kind".*\})$/gm)].map(([, line]) => JSON.parse(line));
  return data.filter((one) => one.kind).map(({ kind, state }) => `${kind} ${state}`);
}

/** The visible rows: level, name, and the exact numbers. */
const rowsInSight = (browser) =>
  browser.run(`return [...document.querySelectorAll(".table .row")].filter((row) => row.querySelector(".name")).map((row) => [
    Number(row.getAttribute("aria-level")) - 1,
    row.querySelector(".name").textContent,
    ...[...row.querySelectorAll(".number")].map((cell) => Number(cell.title.replace(/[ B,]/g, ""))),
    row.querySelector(".address")?.textContent.trim() ?? "",
  ])`);

/** The actions of devtools/client/memory/constants.js, and the place of each action on our page. */
const ACTIONS = `
  take-snapshot-start take-snapshot-end read-snapshot-start read-snapshot-end snapshot-error select-snapshot
  delete-snapshots-start delete-snapshots-end export-snapshot-start export-snapshot-end export-snapshot-error
  import-snapshot-start import-snapshot-end import-snapshot-error
  take-census-start take-census-end take-census-error set-census-display toggle-inverted set-filter-string
  expand-census-node collapse-census-node focus-census-node
  take-tree-map-start take-tree-map-end take-tree-map-error set-tree-map-display
  select-snapshot-for-diffing take-census-diff-start take-census-diff-end diffing-error
  expand-diffing-census-node collapse-diffing-census-node focus-diffing-census-node
  compute-dominator-tree-start compute-dominator-tree-end fetch-dominator-tree-start fetch-dominator-tree-end
  fetch-immediately-dominated-start fetch-immediately-dominated-end dominator-tree-error
  expand-dominator-tree-node collapse-dominator-tree-node focus-dominator-tree-node set-label-display resize-shortest-paths
  fetch-individuals-start fetch-individuals-end individuals-error focus-individual
  toggle-record-allocation-stacks-start toggle-record-allocation-stacks-end change-view pop-view update-memory-front
`.trim().split(/\s+/);

const FAILS = encodeURIComponent('{"by":"descriptiveType"}');

inBoth("every action of Firefox's panel", [heap("small-a.fxsnapshot"), heap("small-b.fxsnapshot")], async (b) => {
  const done = new Set();
  const did = (...names) => names.forEach((name) => (assert.ok(ACTIONS.includes(name), name), done.add(name)));
  const says = (text) => b.until("document.getElementById('status').textContent.includes(arguments[0])", text);
  const total = () => b.run("return Number(document.documentElement.dataset.rows)");
  const active = () => b.run("return Number(document.querySelector('.row.active').dataset.row)");
  const has = async (...states) => {
    const all = await events(b);
    for (const state of states) assert.ok(all.includes(state), `${state} in ${all.join(", ")}`);
  };
  await read(b, 2);
  await has("snapshot reading", "snapshot read");
  did("read-snapshot-start", "read-snapshot-end");

  // The census: keys, groups, order and filter.
  await b.press("1. small-a", "#side");
  await b.until("location.hash.startsWith('#/memory/1/')");
  did("select-snapshot");
  await b.rows("#/memory/1/census?by=coarseType");
  await has("census computing", "census computed");
  did("take-census-start", "take-census-end");
  await b.choose("#main .bar label:nth-of-type(1) select", "type");
  await b.until("location.hash.includes('by=type')");
  did("set-census-display");
  await b.rows("#/memory/1/census?by=type&invert=0");
  await b.focus(".table .list");
  const closed = await total();
  await b.key("Home");
  await b.key("ArrowRight");
  await b.until("Number(document.documentElement.dataset.rows) > arguments[0]", closed);
  did("expand-census-node");
  await b.key("ArrowDown");
  assert.equal(await active(), 1);
  did("focus-census-node");
  await b.key("ArrowLeft"); // to its parent row
  await b.key("ArrowLeft");
  await b.until("Number(document.documentElement.dataset.rows) === arguments[0]", closed);
  did("collapse-census-node");
  await b.run("[...document.querySelectorAll('#main .bar label')].find((one) => one.textContent.includes('Invert')).querySelector('input').click()");
  await b.until("location.hash.includes('invert=1')");
  did("toggle-inverted");
  await b.type("#filter", "Function");
  await b.until("location.hash.includes('filter=Function')");
  did("set-filter-string");
  await b.go(`#/memory/1/census?by=${FAILS}`);
  await b.until("document.getElementById('status').className === 'error' && document.querySelector('.retry')");
  await has("census error");
  await b.click(".retry");
  await b.until("document.querySelectorAll('.retry').length === 1");
  did("take-census-error");

  // The tree map.
  await b.press("Tree Map", "#main");
  await b.until("Number(document.documentElement.dataset.boxes) > 5");
  await has("tree-map computing", "tree-map computed");
  did("take-tree-map-start", "take-tree-map-end", "change-view");
  await b.run("delete document.documentElement.dataset.boxes");
  await b.choose("#main .bar label:nth-of-type(1) select", "objectClass");
  await b.until("location.hash.includes('by=objectClass') && Number(document.documentElement.dataset.boxes) > 5");
  did("set-tree-map-display");
  await b.go(`#/memory/1/treemap?by=${FAILS}`);
  await b.until("document.getElementById('status').className === 'error'");
  await has("tree-map error");
  did("take-tree-map-error");

  // The difference, with the nodes of each of the two snapshots.
  await b.press("Compare", "#side li:nth-child(1)");
  did("select-snapshot-for-diffing");
  await b.press("…with this", "#side li:nth-child(2)");
  await b.until("location.hash === '#/diff/1/2'");
  await b.rows("#/diff/1/2?by=type&invert=0");
  await has("diff computing", "diff computed");
  did("take-census-diff-start", "take-census-diff-end");
  await b.focus(".table .list");
  const same = await total();
  await b.key("ArrowRight");
  await b.until("Number(document.documentElement.dataset.rows) > arguments[0]", same);
  did("expand-diffing-census-node");
  await b.key("ArrowDown");
  assert.equal(await active(), 1);
  did("focus-diffing-census-node");
  for (let step = 0; step < 9 && !(await b.run("return document.querySelector('.row.active .behind')")); step++) await b.key("ArrowDown");
  const [wide, at] = [await total(), await active()];
  await b.key("i");
  await b.until("location.hash.startsWith('#/memory/2/individuals?') && location.hash.includes('of=1.2')");
  await b.press("in snapshot 1", "#main");
  await b.until("location.hash.startsWith('#/memory/1/individuals?')");
  await b.press("← Back to the aggregate", "#main");
  // The view is restored: its groups, its open rows, and the focused row.
  await b.until("location.hash.startsWith('#/diff/1/2?by=type') && document.querySelector('.table .row.active .name') && Number(document.documentElement.dataset.rows) === arguments[0]", wide);
  assert.equal(await active(), at);
  await b.focus(".table .list");
  await b.key("Home");
  await b.key("ArrowLeft");
  await b.until("Number(document.documentElement.dataset.rows) === arguments[0]", same);
  did("collapse-diffing-census-node");
  await b.press("Swap", "#main");
  await b.until("location.hash.startsWith('#/diff/2/1')");
  await b.go(`#/diff/1/2?by=${FAILS}`);
  await b.until("document.getElementById('status').className === 'error' && document.querySelector('.retry')");
  await has("diff error");
  did("diffing-error");

  // Dominators, with labels, paths and their pane.
  await b.rows("#/memory/1/dominators");
  await has("dominators computing", "dominators computed");
  did("compute-dominator-tree-start", "compute-dominator-tree-end", "fetch-dominator-tree-start", "fetch-dominator-tree-end");
  await b.until("document.querySelector('.paths').dataset.node");
  await b.focus(".table .list");
  // The first levels are open.
  const open3 = await total();
  await b.until("document.querySelector('.table .row[aria-level=\"3\"]')");
  await b.key("Home");
  await b.key("ArrowLeft");
  await b.until("Number(document.documentElement.dataset.rows) < arguments[0]", open3);
  const roots = await total();
  await b.key("ArrowRight");
  await b.until("Number(document.documentElement.dataset.rows) > arguments[0]", roots);
  did("expand-dominator-tree-node", "fetch-immediately-dominated-start", "fetch-immediately-dominated-end");
  const node = await b.run("return document.querySelector('.paths').dataset.node");
  await b.key("ArrowDown");
  await b.until("document.querySelector('.paths').dataset.node !== arguments[0]", node);
  did("focus-dominator-tree-node");
  const open = await total();
  const stacked = await b.run("return [...document.querySelectorAll('#main .bar select')].find((one) => one.parentElement.textContent.startsWith('Label by')).options[1].value");
  await b.until("location.hash.includes('open=')");
  await b.run("const select = [...document.querySelectorAll('#main .bar select')].find((one) => one.parentElement.textContent.startsWith('Label by')); select.value = arguments[0]; select.dispatchEvent(new Event('change'))", stacked);
  await b.until("location.hash.includes('label=') && document.querySelector('.table .row .name')");
  // Firefox closes everything when the label changes.
  await b.until("Number(document.documentElement.dataset.rows) === arguments[0]", open);
  did("set-label-display");
  await b.focus(".table .list");
  await b.key("Home");
  await b.key("ArrowLeft");
  await b.until("Number(document.documentElement.dataset.rows) === arguments[0]", roots);
  did("collapse-dominator-tree-node");
  const size = await b.run("return Number(document.querySelector('.splitter').getAttribute('aria-valuenow'))");
  await b.focus(".splitter");
  await b.key("ArrowUp");
  await b.until("Number(document.querySelector('.splitter').getAttribute('aria-valuenow')) === arguments[0]", size + 5);
  did("resize-shortest-paths");
  await b.go(`#/memory/1/dominators?label=${FAILS}`);
  await b.until("document.getElementById('status').className === 'error'");
  did("dominator-tree-error");

  // The nodes of a group, and back.
  await b.rows("#/memory/1/census?by=objectClass&sort=count");
  await b.focus(".table .list");
  await b.key("i");
  await b.until("location.hash.includes('/individuals?') && Number(document.documentElement.dataset.rows) > 1 && document.querySelector('.paths')?.dataset.node");
  await has("individuals computing", "individuals computed");
  did("fetch-individuals-start", "fetch-individuals-end");
  const first = await b.run("return document.querySelector('.paths').dataset.node");
  await b.focus(".table .list");
  await b.key("ArrowDown");
  await b.until("document.querySelector('.paths').dataset.node !== arguments[0]", first);
  did("focus-individual");
  await b.press("← Back to the aggregate", "#main");
  await b.until("location.hash.startsWith('#/memory/1/census?by=objectClass') && location.hash.includes('sort=count')");
  did("pop-view");
  await b.go(`#/memory/1/individuals?by=${FAILS}&group=1`);
  await b.until("document.getElementById('status').className === 'error'");
  await has("individuals error");
  did("individuals-error");

  // Files: an import, a bad file, a saved file, and a save that fails.
  const folder = mkdtempSync(join(tmpdir(), "panel-"));
  const bad = join(folder, "bad.fxsnapshot");
  writeFileSync(bad, "no snapshot");
  await b.upload("#side input[type=file]", heap("medium.fxsnapshot"));
  await read(b, 3);
  await b.until("document.getElementById('side').textContent.includes('3. medium')");
  await has("snapshot importing");
  did("import-snapshot-start", "import-snapshot-end");
  await b.upload("#side input[type=file]", bad);
  await b.until("document.querySelector('#side li:nth-child(4) .error')");
  assert.match(await b.run("return document.querySelector('#side li:nth-child(4) .error').textContent"), /gzip/);
  await has("snapshot error");
  did("import-snapshot-error", "snapshot-error");
  await b.press("Save", "#side li:nth-child(1)");
  const saved = await b.kept();
  assert.equal(saved.name, "heap-1.fxsnapshot");
  assert.equal(saved.size, readFileSync(heap("small-a.fxsnapshot")).length);
  did("export-snapshot-start", "export-snapshot-end");
  await b.run("document.querySelector('#side li:nth-child(3) button').dataset.stays = '1'; window.old = document.querySelector('#side li:nth-child(3) button')");
  await b.press("×", "#side li:nth-child(3)");
  await read(b, 2);
  await has("snapshot removed");
  await b.run("window.old.click()"); // like a second tab that has not seen the removal
  await says("there is no snapshot 3");
  did("export-snapshot-error");

  // Running processes: a snapshot, and call stacks.
  await b.press("Processes");
  await b.until("document.querySelector('#to-processes[aria-current=page]')");
  const sources = fileURLToPath(new URL("../src", import.meta.url));
  const searcher = await start(codeSearch, [sources, "--serve"]);
  const service = await start(onRequest, [], { ABOUT_MEMORY: "listen" });
  const row = (pid) => `[...document.querySelectorAll('.processes tr')].find((one) => one.cells[2]?.textContent === '${pid}')`;
  await b.until(`${row(searcher.pid)} && ${row(service.pid)}`);
  did("update-memory-front");
  const press = (pid, text) => b.run(`[...${row(pid)}.querySelectorAll('button')].find((one) => one.textContent === arguments[0]).click()`, text);
  await press(searcher.pid, "Take snapshot");
  await read(b, 3);
  await has("snapshot saving", "snapshot saved");
  did("take-snapshot-start", "take-snapshot-end");
  await b.press("Again", "#side li:last-of-type");
  await read(b, 4);
  await press(searcher.pid, "Collect garbage");
  await says("Garbage collection completed");
  await press(searcher.pid, "Minimize");
  await says("Memory minimization completed");
  await b.until("/^\\d{4}-\\d\\d-\\d\\dT.*Memory minimization completed/.test(document.querySelector('.messages li').textContent)");
  await b.run(`${row(service.pid)}.querySelector('.recording input').click()`);
  await b.until(`${row(service.pid)}?.querySelector('.recording.on input')?.disabled === false`);
  did("toggle-record-allocation-stacks-start");
  await new Promise((next) => setTimeout(next, 300));
  await b.run(`${row(service.pid)}.querySelector('.recording input').click()`);
  await b.until("location.hash.startsWith('#/stacks/') && document.querySelector('.summary .answer')");
  did("toggle-record-allocation-stacks-end");

  // Removes all snapshots at once, including the failed one.
  await b.press("Delete all", "#side");
  await b.until("document.querySelectorAll('#side ul:first-of-type li').length === 0");
  did("delete-snapshots-start", "delete-snapshots-end");
  assert.deepEqual(ACTIONS.filter((name) => !done.has(name)), []);
  for (const child of [searcher, service]) child.kill("SIGTERM");
  rmSync(folder, { recursive: true });
}, { skip: noExample, mayFail: /status of 4\d\d/ });

const answers = (name) => JSON.parse(gunzipSync(readFileSync(heap(`${name}.answers.json.gz`))));
const NAMES = { noStack: "(no stack available)", noFilename: "(no filename available)" };
const nameOf = (name) => (typeof name === "string" ? (NAMES[name] ?? name) : name);

/** Firefox's rows of a closed tree. */
const rowsOf = (tree) => tree.children.map(({ name, bytes, count, totalBytes, totalCount }) => [0, nameOf(name), bytes, count, totalBytes, totalCount]);

inBoth("Firefox's answers are on the page", ["small-a", "small-b", "medium"].map((name) => heap(`${name}.fxsnapshot`)), async (b) => {
  await read(b, 3);
  let compared = 0;
  const same = (found, expected, what) => {
    assert.ok(found.length > 0, what);
    const known = new Map(expected.map((row) => [JSON.stringify(row.slice(1)), row]));
    // Firefox has no fixed order for equal bytes.
    const place = expected[0].length === 6 ? 4 : 2;
    found.forEach((row, at) => {
      const own = row.slice(0, -1);
      if (typeof own[1] === "string" && !own[1].includes(":")) assert.ok(known.has(JSON.stringify(own.slice(1))), `${what}: ${JSON.stringify(own)}`);
      if (!what.includes("inverted")) assert.equal(own[place], expected[at][place], `${what}: row ${at}`);
      compared++;
    });
  };
  for (const [at, name] of ["small-a", "small-b", "medium"].entries()) {
    const { trees, dominator_tree_node: dominators, shortest_paths: sets } = answers(name);
    for (const [key, address] of [
      ["type", "by=type&invert=0"], ["type-inverted", "by=type&invert=1"], ["type-filter-Fun", "by=type&invert=0&filter=Fun"],
      ["stack", "by=stack"], ["stack-inverted", "by=stack&invert=1"],
    ]) {
      if (!trees[key]?.tree?.children?.length) continue;
      await b.rows(`#/memory/${at + 1}/census?${address}`);
      same(await rowsInSight(b), rowsOf(trees[key].tree), `${name} ${key}`);
    }
    // Dominators: retained and shallow size, label and address of the nodes below the root.
    await b.rows(`#/memory/${at + 1}/dominators`);
    await b.focus(".table .list");
    await b.key("Home");
    // The first fifteen rows are open.
    for (let row = 0; row < 15; row++) {
      const open = await b.run("return [document.querySelector('.row.active').getAttribute('aria-expanded'), document.documentElement.dataset.rows]");
      if (open[0] === "true") {
        await b.key("ArrowLeft");
        await b.until("document.documentElement.dataset.rows !== arguments[0]", open[1]);
      }
      await b.key("ArrowDown");
    }
    const rows = await rowsInSight(b);
    assert.ok(rows.every(([level]) => level === 0));
    const expected = dominators.children.map(({ nodeId, label, shallowSize, retainedSize }) => [label.join(" › "), retainedSize, shallowSize, `@ 0x${nodeId.toString(16)}`]);
    // Firefox has no fixed order for equal sizes.
    const last = Math.min(rows.length, expected.length) - 1;
    const above = (all) => all.filter(([, retained]) => retained > expected[last][1]).sort((a, b) => b[1] - a[1] || (a[3] < b[3] ? -1 : 1));
    const found = above(rows.map(([, ...rest]) => rest));
    assert.deepEqual(found, above(expected), name);
    assert.ok(found.length >= 10);
    // Retaining paths: the nodes and edges of each path from the root.
    const { start, targets, max, paths } = sets.find(({ start }) => start === dominators.nodeId);
    assert.ok(max <= 10 && start > 0);
    for (const [target, all] of paths.slice(0, 4)) {
      assert.ok(targets.includes(target));
      await b.rows(`#/memory/${at + 1}/search?q=${encodeURIComponent(`@0x${target.toString(16)}`)}`);
      await b.until("document.querySelector('.paths')?.dataset.node === arguments[0]", String(target));
      const shown = await b.run("return [...document.querySelectorAll('.paths .path')].map((path) => [...path.querySelectorAll('li')].map((step) => [step.querySelector('.address').textContent.trim(), step.querySelector('.edge')?.textContent.trim() ?? '']))");
      const wanted = all.map((path) => [...path.map(({ predecessor, edge }) => [`@ 0x${predecessor.toString(16)}`, `.${edge ?? "(no name)"} →`]), [`@ 0x${target.toString(16)}`, ""]]);
      assert.deepEqual(shown.slice(0, wanted.length), wanted, `${name} ${target}`);
    }
  }
  const { type, internalType } = JSON.parse(gunzipSync(readFileSync(heap("small-b.diff-from-small-a.json.gz"))));
  for (const [difference, address] of [[type, "by=type&invert=0"], [internalType, "by=internalType"]]) {
    await b.rows(`#/diff/1/2?${address}`);
    same(await rowsInSight(b), rowsOf(difference.tree), `difference ${address}`);
  }
  assert.ok(compared > 100, String(compared));
});

const golden = (name) => fileURLToPath(new URL(`../../tests/golden/${name}`, import.meta.url));

inBoth("everything can be done by keyboard", [heap("small-a.fxsnapshot"), heap("small-b.fxsnapshot"), golden("firefox/diff.a.json"), golden("firefox/diff.b.json"), golden("dmd/dark-matter-mixed.json"), "--no-fix-stacks"], async (b) => {
  await read(b, 2);
  /** Moves the focus until an element matches. */
  const tabTo = async (wanted, back = false) => {
    for (let step = 0; step < 150; step++) {
      if (await b.run(`const at = document.activeElement; return Boolean(${wanted})`)) return;
      await b.key("Tab", ...(back ? ["Shift"] : []));
    }
    assert.fail(`${b.name}: no focus on ${wanted}`);
  };
  const text = (text) => `at.textContent.trim() === ${JSON.stringify(text)}`;
  const total = () => b.run("return Number(document.documentElement.dataset.rows)");
  await tabTo(text("1. small-a"));
  await b.key("Enter");
  await b.until("location.hash === '#/memory/1/summary' && document.activeElement.className === 'summary'");
  await tabTo(text("Aggregate"), true);
  await b.key("Enter");
  await b.until("location.hash === '#/memory/1/census' && document.activeElement.className === 'list'");
  // Shows the tree without inversion, and opens all rows below the first row.
  await tabTo("at.parentElement?.textContent.includes('Invert')", true);
  await b.key("Space");
  await b.until("location.hash.includes('invert=0') && document.querySelector('.table .row .name') && document.activeElement.className === 'list'");
  const closed = await total();
  await b.key("*");
  await b.until("Number(document.documentElement.dataset.rows) > arguments[0]", closed);
  await b.until("location.hash.includes('all=')");
  const before = await rowsInSight(b);
  assert.ok(before.some(([level]) => level > 0));
  // A reload shows the same rows.
  await b.run("window.isOld = true; setTimeout(() => location.reload())");
  await b.until("!window.isOld && document.documentElement.dataset.state === 'ready' && document.querySelectorAll('.table .row .name').length === arguments[0]", before.length);
  assert.deepEqual(await rowsInSight(b), before);
  // Nodes, the height of their paths, and the graph of the paths with links to other nodes.
  await tabTo(text("Dominators"), true);
  await b.key("Enter");
  await b.until("location.hash.includes('dominators') && document.activeElement.className === 'list' && document.querySelector('.paths')?.dataset.node");
  const node = await b.run("return document.querySelector('.paths').dataset.node");
  await b.key("ArrowDown");
  await b.until("document.querySelector('.paths').dataset.node !== arguments[0]", node);
  await b.key("Tab");
  const size = await b.run("return Number(document.activeElement.getAttribute('aria-valuenow'))");
  await b.key("ArrowUp");
  assert.equal(await b.run("return Number(document.activeElement.getAttribute('aria-valuenow'))"), size + 5);
  await tabTo("at.type === 'checkbox' && at.closest('.paths')");
  await b.key("Space");
  await b.until("document.querySelector('.graph svg a')");
  const nodes = await b.run("return [document.querySelectorAll('.graph rect').length, document.querySelectorAll('.graph rect.target').length, document.querySelectorAll('.graph path.line').length]");
  assert.ok(nodes[0] > 1 && nodes[1] === 1 && nodes[2] >= nodes[0] - 1, String(nodes));
  await tabTo("at.className === 'graph'");
  const width = await b.run("return Number(document.querySelector('.graph svg').getAttribute('width'))");
  await b.key("+");
  assert.ok((await b.run("return Number(document.querySelector('.graph svg').getAttribute('width'))")) > width);
  await b.key("Tab");
  await b.key("Enter");
  await b.until("location.hash.includes('/search?q=%400x')");
  await b.until("document.querySelector('.table .row .name')");
  // Another snapshot.
  await b.key("ArrowDown", "Control");
  await b.until("location.hash.startsWith('#/memory/2/')");
  // A report: open, close, exact bytes.
  // Behind the end of the page, the browser's own controls get the focus, so this moves backwards.
  await tabTo(text("diff.a.json"), true);
  await b.key("Enter");
  await b.until("location.hash === '#/report/1' && document.activeElement.getAttribute('role') === 'tree'");
  await tabTo("at.id === 'verbose'", true);
  await b.key("Space");
  await b.until("location.hash.includes('verbose=1')");
  await tabTo(text("Flame graph"), true);
  await b.key("Enter");
  await b.until("location.hash.includes('view=flame') && document.querySelector('.flame .frame')");
  assert.match(await b.run("return document.querySelector('.flame .about').textContent"), /^explicit · .* in \d+ reports/);
  // Stacks: suggested reporters for the chosen row.
  await tabTo(text("dark-matter-mixed.json"), true);
  await b.key("Enter");
  await b.until("location.hash.startsWith('#/stacks/1') && document.querySelector('.summary .answer')");
  await tabTo("at.textContent === 'Open its stacks'");
  await b.key("Enter");
  await b.until("location.hash.includes('view=table') && document.querySelector('.table .row.stack')");
  await tabTo("at.parentElement?.textContent.includes('suggest')", true);
  await b.key("Space");
  await b.until("Number(document.querySelector('.suggestions')?.dataset.suggestions) > 0");
  assert.match(await b.run("return document.querySelector('.suggestions').textContent"), /allocated by .* at /);
  await tabTo("at.id === 'by-reporter'");
  await b.key("Space");
  await b.until("location.hash.includes('roots=1')");
  await tabTo(text("Flame graph"), true);
  await b.key("Enter");
  await b.until("document.querySelector('.flame .frame')");
  const frames = await b.run("return [...document.querySelectorAll('.flame .frame')].filter((one) => one.getAttribute('aria-level') === '2').map((one) => one.title.split('\\n')[0])");
  assert.ok(frames.some((name) => name === "(unreported)") && frames.length > 1, frames.join(", "));
});

/** Files that Firefox has accepted or refused. Some of them are made to do harm. */
const hostile = readdirSync(heap("handmade")).filter((name) => name.endsWith(".fxsnapshot"));
const verdicts = JSON.parse(readFileSync(heap("handmade/verdicts.json")));

inBoth("hostile snapshots are read, or refused with a message", hostile.slice(0, 90).map((name) => heap(`handmade/${name}`)), async (b) => {
  await b.until("[...document.querySelectorAll('#side li')].length === arguments[0] && [...document.querySelectorAll('#side li')].every((one) => one.querySelector('a.title, .error'))", Math.min(90, hostile.length));
  const items = await b.run("return [...document.querySelectorAll('#side ul:first-of-type li')].map((one) => ({ title: one.querySelector('.title').textContent.replace(/^\\d+\\. /, ''), error: one.querySelector('.error')?.textContent ?? null, id: /^\\d+/.exec(one.querySelector('.title').textContent)[0] }))");
  let opened = 0;
  for (const { title, error, id } of items) {
    const verdict = verdicts[title];
    assert.ok(verdict, title);
    if (error !== null) {
      assert.ok(error.length > 3 && !error.includes("panicked"), `${title}: ${error}`);
      continue;
    }
    // Each view shows rows, or the reason why it has no rows.
    for (const view of ["census?by=internalType", "dominators", "treemap"]) {
      await b.go(`#/memory/${id}/${view}`);
      await b.until("document.querySelector('#main .bar') && !/…$/.test(document.getElementById('status').textContent) && document.getElementById('status').textContent !== ''");
    }
    opened++;
  }
  assert.ok(opened > 20, String(opened));
  // Names that would be code in another context stay text: the page has only its own script.
  assert.equal(await b.run("return document.querySelectorAll('script').length"), 1);
}, { mayFail: /status of 4\d\d/ });
