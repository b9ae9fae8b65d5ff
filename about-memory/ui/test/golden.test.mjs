// In each case that Firefox answered, the text of the page is Firefox's; in the cases where we differ, it is ours.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { ask, golden, open, text, write } from "./browser.mjs";

/** Removes the spaces that copying a page adds to the list of invalid values. */
function withoutArtefacts(text) {
  let inList = false;
  return text
    .split("\n")
    .map((line) => {
      inList = (inList || line.startsWith("WARNING: the following")) && !line.startsWith("This indicates");
      return inList ? line.trim() : line;
    })
    .join("\n");
}

/** Removes the marks of merged chains in a diff, which Firefox loses. */
const withoutMarksOfChains = (text) =>
  text.replace(/^(.*?── .*\/.*?)(?: \[[+-]\])+$/gm, (line, rest) => rest);

const plain = (text) => withoutMarksOfChains(withoutArtefacts(text));

function cases(folder) {
  return readdirSync(golden(folder))
    .filter((name) => /\.json(\.gz)?$/.test(name) && !/\.(opts|b)\.json(\.gz)?$/.test(name))
    .map((name) => ({ file: golden(`${folder}/${name}`), stem: name.replace(/(\.a)?\.json(\.gz)?$/, "") }))
    .map((one) => (/\.a\.json/.test(one.file) ? { ...one, second: one.file.replace(".a.json", ".b.json") } : one));
}

const read = (folder, stem, suffix) =>
  readFileSync(golden(`${folder}/${stem}${suffix ? "." : ""}${suffix}.expected.txt`), "utf8");

test("there are cases", () => assert.ok(cases("firefox").length > 30 && cases("ours").length > 5));

for (const { file, second, stem } of cases("firefox")) {
  test(`as Firefox: ${stem}`, async () => {
    const options = golden(`firefox/${stem}.opts.json`);
    const asked = existsSync(options) ? JSON.parse(readFileSync(options, "utf8")) : [{}];
    const { page, faults, close } = await open(write(file, ...(second ? [second] : [])));
    for (const { suffix = "", ...rest } of asked) {
      await ask(page, rest);
      const [ours, expected] = [await text(page), read("firefox", stem, suffix)];
      assert.equal(plain(ours), plain(expected), suffix);
      if (stem === "diff") assert.equal(ours, expected, suffix);
    }
    assert.deepEqual(faults, []);
    await close();
  });
}

for (const { file, second, stem } of cases("ours")) {
  test(`where we differ: ${stem}`, async () => {
    const { page, faults, close } = await open(write(file, ...(second ? [second] : [])));
    for (const suffix of ["", "verbose"]) {
      await ask(page, { verbose: suffix === "verbose" });
      assert.equal(await text(page), read("ours", stem, suffix));
    }
    assert.deepEqual(faults, []);
    await close();
  });
}
