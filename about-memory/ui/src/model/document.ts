// The whole text as rows, from the total to the end of the last process.

import { formatAmount, Units } from "../text/amount";
import type { ReportData, ReportProcess } from "../data/reports";
import { showName, showText } from "../text/escape";
import type { Filter } from "./filter";
import type { Layout } from "./layout";
import { invalidPaths, isShown, type OpenEntries, Rows } from "./rows";

/** At most this many warnings are shown unless the text is verbose. */
const SOME_WARNINGS = 20;

const NOTHING_KNOWN =
  "WARNING: the 'heap-allocated' memory reporter and the moz_malloc_usable_size() function do not work for this \
platform and/or configuration. This means that 'heap-unclassified' is not shown and the 'explicit' tree shows much \
less memory than it should.";
const NO_HEAP_ALLOCATED =
  "WARNING: the 'heap-allocated' memory reporter does not work for this platform and/or configuration. This means \
that 'heap-unclassified' is not shown and the 'explicit' tree shows less memory than it should.";
const NO_USABLE_SIZE =
  "WARNING: the moz_malloc_usable_size() function does not work for this platform and/or configuration. This means \
that much of the heap-allocated memory is not measured by individual memory reporters and so will fall under \
'heap-unclassified'.";
/** Replaces the first two warnings above if another warning reports that the program declares no allocator. */
const NOT_DECLARED =
  "WARNING: the program declares no allocator. This means that amounts are the bytes that the program requested, \
that 'heap-unclassified' is not shown and that the 'explicit' tree shows less memory than it should.";
const INVALID = "WARNING: the following values are negative or unreasonably large.";
const INVALID_MEANS = "This indicates a defect in one or more memory reporters. The invalid values are highlighted.";

export function arrange(layout: Layout, opened: OpenEntries, verbose: boolean): Rows {
  const { data, filter } = layout.forest;
  const rows = new Rows(layout, opened, verbose);
  addWarnings(rows, data, filter, verbose);
  const total = data.processes.reduce((sum, process) => sum + BigInt(process.resident), 0n);
  rows.addText(`Total resident memory (approximate) -- ${formatAmount(total, Units.Bytes, verbose)}`, "heading");
  let any = false;
  for (const process of data.processes) {
    const shown = isShown(layout, process);
    rows.starts.push(shown ? rows.length : -1);
    if (shown) addProcess(rows, layout, process);
    any ||= shown;
  }
  if (!any) rows.addText("No results found.");
  return rows;
}

function addWarnings(rows: Rows, data: ReportData, filter: Filter, verbose: boolean) {
  const passes = data.treeWarnings.filter(({ subject }) => !filter || filter.accepts(subject));
  const warnings = [...data.setWarnings, ...passes];
  if (warnings.length === 0) return;
  rows.addText("WARNING: the reports below are incomplete or doubtful.", "warning");
  rows.addText("");
  const shown = verbose ? warnings.length : SOME_WARNINGS;
  for (const { subject, message } of warnings.slice(0, shown)) {
    rows.addText(`${showName(subject)}: ${showText(message)}`, "warning");
  }
  if (warnings.length > shown) rows.addText(`(${warnings.length - shown} more)`, "warning");
  rows.addText("");
}

function addProcess(rows: Rows, layout: Layout, process: ReportProcess) {
  const { forest } = layout;
  const name = showText(process.name);
  const isLeft = (node: number) => forest.isLeft(node);
  const others = process.trees.filter((root) => root !== process.explicit && isLeft(root));
  const lines = process.lines.filter(isLeft);
  rows.addText(name, "process");
  if (process.explicit >= 0 && isLeft(process.explicit)) {
    addProcessWarnings(rows, layout, process, [process.explicit, ...others], lines);
    rows.addText("Explicit Allocations", "heading");
    rows.addText("");
    rows.addTree(process.explicit);
    rows.addText("");
  }
  if (others.length > 0 || lines.length > 0) {
    rows.addText("Other Measurements", "heading");
    rows.addText("");
  }
  for (const root of others) {
    rows.addTree(root);
    rows.addText("");
  }
  if (lines.length > 0) {
    rows.addLines(lines);
    rows.addText("");
  }
  rows.addText(`End of ${name}`, "process");
}

function addProcessWarnings(rows: Rows, layout: Layout, process: ReportProcess, trees: number[], lines: number[]) {
  const { forest } = layout;
  const { data, filter } = forest;
  const heapKnown = process.heapAllocated >= 0;
  if (!filter && !(heapKnown && data.usableSizeKnown)) {
    rows.addText("");
    // In a set of several processes, each warning names its process.
    const subjects = ["heap-allocated", `${process.name}: heap-allocated`];
    const undeclared = !heapKnown && data.setWarnings.some(({ subject }) => subjects.includes(subject));
    const nothing = data.usableSizeKnown ? NO_HEAP_ALLOCATED : NOTHING_KNOWN;
    rows.addText(undeclared ? NOT_DECLARED : heapKnown ? NO_USABLE_SIZE : nothing, "warning");
  }
  const invalid = trees.flatMap((root) => invalidPaths(layout, root));
  for (const line of lines) {
    const amount = forest.amount(line);
    if (forest.isOutOfRange(amount, amount)) invalid.push(showName(forest.name(line, line)));
  }
  if (invalid.length === 0) return;
  rows.addText("");
  rows.addText(INVALID, "warning");
  rows.addText("");
  for (const path of invalid) rows.addText(path, "warning");
  rows.addText("");
  rows.addText(INVALID_MEANS, "warning");
}
