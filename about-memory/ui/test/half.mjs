// Runs half of the tests in one process with one browser. Starting a process and a browser for each file would take a
// second of processor time.
import { readdirSync } from "node:fs";

/** Loads every second file of tests, which registers its tests. */
export async function half(first) {
  const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs")).sort();
  for (let index = first; index < files.length; index += 2) await import(`./${files[index]}`);
}
