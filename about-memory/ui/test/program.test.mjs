// The page itself sums and sorts. These tests compare it with the program's text, also in cases without an answer from
// Firefox: filters that separate a leaf from the entries below it, chains, diffs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { ask, golden, open, program, report, text, write } from "./browser.mjs";

const MB = 1 << 20;

function show(files, { verbose, filter, regex, hideTiny = true }) {
  const options = [
    ...(verbose ? ["--verbose"] : []),
    ...(filter ? ["--filter", filter] : []),
    ...(regex ? ["--regex"] : []),
    ...(hideTiny ? [] : ["--threshold", "0"]),
  ];
  return execFileSync(program, [files.length > 1 ? "diff" : "show", ...files, ...options], {
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 1 << 30,
  }).toString();
}

async function check(files, asked) {
  const { page, faults, close } = await open(write(...files));
  for (const one of asked) {
    await ask(page, one);
    assert.equal(await text(page), show(files, one), JSON.stringify(one));
  }
  assert.deepEqual(faults, []);
  await close();
}

/** Some filters with words from a sample. */
const FILTERS = [
  {},
  { hideTiny: false },
  { filter: "heap" },
  { filter: "explicit/" },
  { filter: "explicit/js", verbose: true },
  { filter: "e", hideTiny: false },
  { filter: "/[a-m][^/]*$", regex: true },
  { filter: "^explicit/.*(s|t)$|^heap-allocated$", regex: true },
  { filter: "^[^/]*$", regex: true },
  { filter: "(0x|id=|pid)", regex: true },
];

test("a real report", () => check([golden("firefox/sample.json.gz")], FILTERS));

test("a diff of reports with few common paths", () => {
  const [first, second] = ["a", "b"].map((side) => golden(`firefox/diff-rand1.${side}.json`));
  return check([first, second], FILTERS);
});

test("a diff with an empty report", () => check([golden("firefox/sample.json.gz"), report()], FILTERS));

const ODD = [
  { path: "explicit/a", amount: 5 * MB },
  { path: "explicit/a/b", amount: 3 * MB },
  { path: "explicit/a/b", amount: 2 * MB },
  { path: "explicit/a/b/c/d", amount: 7 * MB, kind: 0 },
  { path: "explicit/a/b", amount: 9 * MB, kind: 0 },
  { path: "explicit/(itself)", amount: 4 * MB },
  { path: "explicit/(itself)/(itself)", amount: 3 * MB },
  { path: "explicit/x/heap-unclassified", amount: MB },
  { path: "heap-allocated", amount: 30 * MB, kind: 2 },
  { path: "other/a\\b/c", amount: 1, kind: 2, units: 1 },
  { path: "other/a\\b", amount: 2, kind: 2, units: 1 },
  { path: "other/neg", amount: -5, kind: 2, units: 1 },
];
const CUTS = [
  {},
  { verbose: true },
  ...["/a$", "/b$", "a/b", "b/c", "d$", "heap-", "^(explicit|heap)", "itself", "l\\)$", "(d|b)$", "neg"].flatMap((filter) => [
    { filter, regex: true },
    { filter, regex: true, hideTiny: false },
  ]),
  { filter: "\\" },
];

test("leaves that are inner nodes, chains, kinds mixed", () => check([report(...ODD)], CUTS));

test("the same, as a diff", () => {
  const second = ODD.filter((_, i) => i % 3 !== 1).map((one, i) => ({ ...one, amount: one.amount + (i % 2) * MB }));
  return check([report(...ODD), report(...second)], CUTS);
});

test("heap-unclassified as a report", () =>
  check(
    [
      report(
        { path: "explicit/heap-unclassified/x", amount: 3 * MB },
        { path: "explicit/heap-unclassified-not/y", amount: 3 * MB },
        { path: "explicit/a", amount: MB },
        { path: "heap-allocated", amount: 9 * MB, kind: 2 },
      ),
    ],
    [{}, { filter: "^(explicit/a|heap)", regex: true }, { filter: "not|allocated", regex: true }, { filter: "heap" }],
  ));

test("invalid values among tiny ones", () => {
  const tiny = Array.from({ length: 30 }, (_, i) => ({ path: `explicit/t${i % 5}/u${i}`, amount: (i % 7) - 3 }));
  const file = report({ path: "explicit/big", amount: 50 * MB }, ...tiny, { path: "heap-allocated", amount: MB, kind: 2 });
  return check([file], [{}, { verbose: true }, { filter: "t" }, { filter: "big" }, { filter: "u[1-3]", regex: true }]);
});
