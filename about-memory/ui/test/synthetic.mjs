// Writes a report file of any size. The contents are the same each time.
import { closeSync, openSync, writeSync } from "node:fs";

const WORDS = ["js", "dom", "layout", "gfx", "images", "cache", "style", "network", "storage", "workers", "media", "text"];
const PROCESSES = 8;

/** Returns a generator of numbers in [0, 1) from a seed (mulberry32). */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function writeSynthetic(file, count, seed = 1) {
  const next = random(seed);
  const out = openSync(file, "w");
  const totals = new Array(PROCESSES).fill(0);
  const name = (i) => (i === 0 ? "Main Process (pid 1)" : `web (pid ${i + 1})`);
  const line = (process, path, kind, amount, description) =>
    JSON.stringify({ process: name(process), path, kind, units: 0, amount, description });
  writeSync(out, '{"version": 1, "hasMozMallocUsableSize": true, "reports": [\n');
  let lines = [];
  for (let i = 0; i < count; i++) {
    const process = i % PROCESSES;
    const depth = 1 + Math.floor(next() * 6);
    const inner = Array.from({ length: depth }, () => WORDS[Math.floor(next() * WORDS.length)]);
    const amount = Math.floor(2 ** (4 + next() * 16));
    totals[process] += amount;
    const path = `explicit/${inner.join("/")}/object-${i.toString(36)}`;
    lines.push(line(process, path, 1, amount, `Memory used by ${inner[0]}, which was made up.`));
    if (lines.length === 10_000) {
      writeSync(out, `${lines.join(",\n")},\n`);
      lines = [];
    }
  }
  for (let process = 0; process < PROCESSES; process++) {
    lines.push(line(process, "heap-allocated", 2, Math.floor(totals[process] * 1.25), "All of the heap."));
    lines.push(line(process, "resident", 2, Math.floor(totals[process] * 1.5), "All that is resident."));
  }
  writeSync(out, `${lines.join(",\n")}\n]}\n`);
  closeSync(out);
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [file, count] = process.argv.slice(2);
  if (!(Number(count) >= 0)) {
    console.error("usage: node synthetic.mjs FILE REPORTS");
    process.exit(2);
  }
  writeSynthetic(file, Number(count));
}
