// The words and numbers of Firefox's Memory panel in the views of snapshots: columns, groups, and texts of empty views.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { inBoth } from "./in_both.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));

inBoth("columns, groups and empty views have Firefox's words", [heap("small-a.fxsnapshot"), heap("small-a.fxsnapshot"), heap("handmade/good.fxsnapshot"), heap("handmade/root-only.fxsnapshot")], async (b) => {
  const all = (selector) => b.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent.trim())", selector);
  const says = (text) => b.until("document.getElementById('status').textContent === arguments[0]", text);
  /** Returns the entries of the menu with this name. */
  const menu = (name) => b.run("return [...document.querySelectorAll('#main .bar label')].filter((one) => one.textContent.startsWith(arguments[0])).flatMap((label) => [...label.querySelector('select').options].map((one) => one.textContent))", name);
  await b.until("document.querySelectorAll(\"#side li a[href*='#/memory/']\").length === 4");
  for (const text of ["Delete all", "Import…"]) assert.ok((await all("#side button")).includes(text), text);
  assert.deepEqual((await all("#side li:first-child button")), ["Save", "Compare", "×"]);

  await b.rows("#/memory/1/census?by=type&invert=0");
  assert.deepEqual(await all(".table .heads button"), ["Bytes", "Count", "Total Bytes", "Total Count", "Group"]);
  const views = await all("#main .bar [aria-current], #main .bar .tabs *, #main .bar button");
  for (const view of ["Tree Map", "Aggregate", "Dominators"]) assert.ok(views.includes(view), `${view} in ${views}`);
  for (const group of ["Type", "Call Stack"]) assert.ok((await menu("Group by")).includes(group), `${group} in ${await menu("Group by")}`);
  // All sizes of a column have one unit and two decimals. Firefox has whole numbers and two kinds of units.
  const [values, percents] = [await all(".table .row .value"), await all(".table .row .percent")];
  assert.ok(values.length >= 16 && percents.length === values.length);
  for (const value of values) assert.match(value, /^[\d,]+( B)?$|^[\d,]+\.\d\d [KMG]iB$/);
  for (const percent of percents) assert.match(percent, /^\d+\.\d\d%$/);

  // If a row is open with all rows below it, Left also moves from a leaf to its parent row.
  const active = () => b.run("const row = document.querySelector('.row.active'); return [Number(row.dataset.row), Number(row.getAttribute('aria-level')), row.getAttribute('aria-expanded')]");
  const closed = await b.run("return Number(document.documentElement.dataset.rows)");
  await b.focus(".table .list");
  await b.key("Home");
  await b.key("*");
  await b.until("Number(document.documentElement.dataset.rows) > arguments[0]", closed);
  do await b.key("ArrowDown");
  while ((await active())[2] !== null);
  const [at, level] = await active();
  assert.ok(level > 1, `row ${at}`);
  await b.key("ArrowLeft");
  const [around, above, isOpen] = await active();
  assert.ok(around < at && above === level - 1 && isOpen === "true", `from row ${at} to ${around}`);

  await b.rows("#/memory/1/dominators");
  assert.deepEqual((await all(".table .heads button")).slice(0, 2), ["Retained", "Shallow"]);
  for (const label of ["Type", "Call Stack"]) assert.ok((await menu("Label by")).includes(label), `${label} in ${await menu("Label by")}`);

  await b.go("#/memory/3/census?by=stack");
  await says("No call stacks found. Record call stacks before taking a snapshot.");
  await b.go("#/memory/1/census?by=type&filter=no%20such%20name");
  await says("No matches.");
  await b.go("#/memory/4/census?by=objectClass");
  await says("Empty.");
  await b.go("#/diff/1/2?by=objectClass");
  await says("No difference between the baseline and comparison.");
});
