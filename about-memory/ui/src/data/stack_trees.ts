// Rows as trees of reports, for the treemap: one tree has the sites of each crate, another the sites of each type.

import type { ReportData } from "./reports";
import type { RowAmounts, HolderKey, Stacks } from "./stacks";

const TREES: [string, HolderKey][] = [
  ["heap by crate", 2],
  ["heap by type", 1],
];

/** Returns the trees of the rows; for a change, the trees of the differences. */
export function stackTrees(stacks: Stacks, amounts: RowAmounts): ReportData {
  const parent: number[] = [];
  const firstChild: number[] = [];
  const nextSibling: number[] = [];
  const amount: number[] = [];
  const names: string[] = [];
  const add = (above: number, before: number, name: string, own: number) => {
    const node = parent.length;
    parent.push(above);
    firstChild.push(-1);
    nextSibling.push(-1);
    amount.push(own);
    names.push(name);
    if (before >= 0) nextSibling[before] = node;
    else if (above >= 0) firstChild[above] = node;
    return node;
  };
  const trees = TREES.map(([title, key]) => {
    const groups = new Map<number, Map<number, number>>();
    for (let row = 0; row < stacks.rows; row++) {
      const bytes = amounts.bytes[row] - (amounts.before?.bytes[row] ?? 0);
      if (bytes === 0) continue;
      const group = stacks.holders[key][row];
      const sites = groups.get(group) ?? new Map<number, number>();
      groups.set(group, sites);
      const site = stacks.holders[0][row];
      sites.set(site, (sites.get(site) ?? 0) + bytes);
    }
    const root = add(-1, -1, title, 0);
    let last = -1;
    for (const [group, sites] of groups) {
      last = add(root, last, stacks.names.get(group), 0);
      const above = last;
      let lastSite = -1;
      for (const [site, bytes] of sites) lastSite = add(above, lastSite, stacks.names.get(site), bytes);
    }
    return root;
  });
  const count = parent.length;
  return {
    isDiff: amounts.before !== null,
    usableSizeKnown: true,
    processes: [{ name: "", resident: "0", trees, lines: [], explicit: -1, heapAllocated: -1, heapUnclassified: -1 }],
    setWarnings: [],
    treeWarnings: [],
    count,
    shape: "",
    leaves: new Int32Array(),
    parent: Int32Array.from(parent),
    firstChild: Int32Array.from(firstChild),
    nextSibling: Int32Array.from(nextSibling),
    flags: new Uint8Array(count),
    amount: Float64Array.from(amount),
    big: null,
    heap: new Map(),
    merged: new Map(),
    descriptionOf: new Int32Array(count),
    descriptions: { get: () => "" },
    names: { get: (index) => names[index] },
    flame: null,
    heapView: null,
  };
}
