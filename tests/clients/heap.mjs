// Compares about-memory with memlab and the loader of Chrome's developer tools on heap snapshots: the number of nodes,
// their bytes, and the retained size of each node.
//
// usage: node heap.mjs PROGRAM SNAPSHOTS FOLDER
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import memlab from "@memlab/core";
import { chromium } from "playwright-core";

const [program, snapshots, folder] = process.argv.slice(2);
const failures = [];
const equal = (what, found, wanted) => {
  if (found !== wanted) failures.push(`${what}: the client has ${found}, the product ${wanted}`);
};
const run = (...options) => execFileSync(program, options, { encoding: "utf8", maxBuffer: 2 ** 30 });

/** Compares the retained sizes from a client: one for each node, the root first. */
function compare(client, name, wanted, found) {
  equal(`${client}: ${name}: nodes`, found.retained.length, wanted.retained.length);
  equal(`${client}: ${name}: bytes`, found.bytes, wanted.bytes);
  for (const [index, size] of wanted.retained.entries()) {
    if (found.retained[index] !== size) {
      equal(`${client}: ${name}: retained size of node ${index}`, found.retained[index], size);
      return; // One difference is enough.
    }
  }
}

async function inMemlab(file) {
  memlab.config.muteConsole = true;
  const heap = await memlab.utils.getSnapshotFromFile(file, { buildNodeIdIndex: true });
  memlab.analysis.preparePathFinder(heap);
  const found = { retained: [], bytes: 0 };
  heap.nodes.forEach((node) => {
    found.retained.push(node.retainedSize);
    found.bytes += node.self_size;
  });
  return found;
}

/** The modules that the Memory panel uses, from the browser itself. */
async function inDevTools(page, file) {
  return page.evaluate(async (text) => {
    const worker = await import("/devtools/entrypoints/heap_snapshot_worker/heap_snapshot_worker.js");
    const { port1, port2 } = new MessageChannel();
    new worker.HeapSnapshot.SecondaryInitManager(port2);
    const loader = new worker.HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent() {} });
    await loader.write(text);
    loader.close();
    const heap = await loader.buildSnapshot(port1);
    return { retained: Array.from(heap.retainedSizes), bytes: heap.totalSize };
  }, readFileSync(file, "utf8"));
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const port = await freePort();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", `--remote-debugging-port=${port}`],
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${port}/devtools/inspector.html`);
for (const name of ["small-a", "medium"]) {
  const snapshot = join(snapshots, `${name}.fxsnapshot`);
  const file = join(folder, `${name}.heapsnapshot`);
  run("export", snapshot, "-o", file);
  // In these snapshots, every node except the root has a dominator.
  const rows = run("snapshot", "dominators", snapshot, "--tsv").trim().split("\n").slice(1);
  const retained = rows.map((row) => Number(row.split("\t")[2]));
  const { retainedSize: bytes } = JSON.parse(run("snapshot", "dominators", snapshot, "--json"));
  const wanted = { retained: [bytes, ...retained], bytes };
  compare("memlab", name, wanted, await inMemlab(file));
  compare("DevTools", name, wanted, await inDevTools(page, file));
}
await browser.close();
for (const failure of failures) console.error(failure);
if (failures.length === 0) console.log("memlab and DevTools: all retained sizes are equal to the product's");
process.exitCode = failures.length ? 1 : 0;
