// The reports in the page. They are decoded once and never changed. The data of a later measurement shares all equal
// parts with the data of the earlier measurement.
// html/payload.rs writes the data.

import type { Units } from "../text/amount";
import { NumberColumn, TextColumn } from "./columns";
import { type FlameGraph, type FlameHeader, readFlame } from "./flame";
import { type Heap, type HeapHeader, readHeap } from "./heap";

const VERSION = 1;
export const HEAP_UNCLASSIFIED = "heap-unclassified";
/**
 * Rows of DMD below heap-unclassified that are intentionally negative, so that the sum of unreported memory is correct.
 */
const CORRECTIONS = ["(counted twice)", "(reported by amount, blocks unknown)"];
export const ITSELF = "(itself)";
export const FAKE_CHILD = "(fake child)";

export interface Warning {
  subject: string;
  message: string;
}

export interface ReportProcess {
  name: string;
  /** The bytes that the process adds to the total of resident memory, a decimal number. */
  resident: string;
  /** Roots of trees, in order. */
  trees: number[];
  /** Reports outside of trees, in order. */
  lines: number[];
  /** The tree called `explicit`, or -1. */
  explicit: number;
  /** The line called `heap-allocated`, or -1. */
  heapAllocated: number;
  /** The node of the unreported memory, or -1. */
  heapUnclassified: number;
}

interface ReportHeader {
  version: number;
  is_diff: boolean;
  usable_size_known: boolean;
  exact: boolean;
  nodes: number;
  processes: { name: string; resident: string; trees: number; lines: number }[];
  set_warnings: Warning[];
  tree_warnings: Warning[];
  flame?: FlameHeader;
  heap?: HeapHeader;
  shape?: string;
  columns: [string, number][];
}

/** The header of a later measurement of the same reports. It contains only amounts. */
interface LaterHeader {
  version: number;
  residents: string[];
  columns: [string, number][];
}

export interface ReportData {
  isDiff: boolean;
  usableSizeKnown: boolean;
  processes: ReportProcess[];
  setWarnings: Warning[];
  treeWarnings: Warning[];
  /** The number of nodes. Parents are before their children. */
  count: number;
  /** A text that is equal for data that differs only in amounts. Empty if the data is measured only once. */
  shape: string;
  /** The nodes with amounts, in order. */
  leaves: Int32Array;
  /** The parent of each node; -1 for roots and lines. */
  parent: Int32Array;
  firstChild: Int32Array;
  nextSibling: Int32Array;
  flags: Uint8Array;
  /** The amounts of leaves. If floats would lose digits, the exact amounts are in `big` instead. */
  amount: Float64Array;
  big: bigint[] | null;
  /** The HEAP part of each leaf that is partly HEAP. */
  heap: Map<number, number | bigint>;
  /** Firefox's [N]: the number of reports that one entry adds up. */
  merged: Map<number, number>;
  /** The index of the description of each leaf. */
  descriptionOf: Int32Array;
  descriptions: Pick<TextColumn, "get">;
  names: Pick<TextColumn, "get">;
  /** The stacks of a DMD dump, if the page has one. */
  flame: FlameGraph | null;
  /** A recording, a change or a dump, which the page shows in place of reports. */
  heapView: Heap | null;
}

export const units = (data: ReportData, node: number) => (data.flags[node] & 3) as Units;
export const isItself = (data: ReportData, node: number) => (data.flags[node] & 4) !== 0;
/** Returns which bytes of a leaf are HEAP: 0 for no bytes, 1 for all bytes, 2 for the amount in `heap`. */
export const heapPart = (data: ReportData, node: number) => (data.flags[node] >> 3) & 3;
export const isLeaf = (data: ReportData, node: number) => data.firstChild[node] < 0;

/** Returns the mark of a diff, or an empty text. */
export function mark(data: ReportData, node: number): string {
  if (!data.isDiff || !isLeaf(data, node)) return "";
  return ["", "-", "+", ""][data.flags[node] >> 6];
}

/** Returns the name below the parent, as reported. */
export function rawName(data: ReportData, node: number): string {
  return node < data.descriptionOf.length ? data.names.get(node) : HEAP_UNCLASSIFIED;
}

/** Whether the node is one of the rows that are intentionally negative. */
export function isCorrection(data: ReportData, node: number): boolean {
  const above = data.parent[node];
  return (
    data.processes.some(({ explicit }) => explicit >= 0 && above >= 0 && data.parent[above] === explicit) &&
    rawName(data, above) === HEAP_UNCLASSIFIED &&
    CORRECTIONS.includes(rawName(data, node))
  );
}

/** Removes the data from its element and decodes it. */
export async function read(element: HTMLElement): Promise<ReportData> {
  const packed = fromBase64(element.textContent!);
  element.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/**
 * Decodes with the browser's own function or, in older browsers, in a loop: `Uint8Array.from` with a callback for each
 * byte takes twenty times as long as the loop.
 */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const texts = new TextDecoder();

/**
 * Decodes data. `before` is the data that the page shows. If the new reports have the same shape, `bytes` contains only
 * amounts.
 */
export function decode(bytes: Uint8Array, before?: ReportData): ReportData {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header: ReportHeader | LaterHeader = JSON.parse(texts.decode(bytes.subarray(4, 4 + length)));
  if (header.version !== VERSION) throw new Error(`data of version ${header.version}`);
  const columns = new Map<string, Uint8Array>();
  let at = 4 + length;
  for (const [name, size] of header.columns) columns.set(name, bytes.subarray(at, (at += size)));
  const column = (name: string) => columns.get(name)!;
  if ("residents" in header) return later(header.residents, column, before!);
  return whole(header, column);
}

/** Returns the same reports with other amounts. */
function later(residents: string[], column: (name: string) => Uint8Array, before: ReportData): ReportData {
  const amount = new Float64Array(before.amount.length);
  const big = before.big && before.big.map(() => 0n);
  const heap = new Map<number, number | bigint>();
  const amounts = new NumberColumn(column("amounts"));
  const heaps = new NumberColumn(column("heaps"));
  for (const leaf of before.leaves) {
    if (big) big[leaf] = amounts.nextBig();
    else amount[leaf] = amounts.nextSigned();
    if (heapPart(before, leaf) === 2) heap.set(leaf, big ? heaps.nextBig() : heaps.nextSigned());
  }
  const processes = before.processes.map((process, at) => ({ ...process, resident: residents[at] }));
  return { ...before, amount, big, heap, processes };
}

function whole(header: ReportHeader, column: (name: string) => Uint8Array): ReportData {
  const stored = header.nodes;
  // Each process may get one more node, for its unreported memory.
  const room = stored + header.processes.length;
  const parent = new Int32Array(room).fill(-1);
  const firstChild = new Int32Array(room).fill(-1);
  const nextSibling = new Int32Array(room).fill(-1);
  const lastChild = new Int32Array(room).fill(-1);
  const flags = new Uint8Array(room);
  flags.set(column("flags"));
  const amount = new Float64Array(room);
  const big = header.exact ? null : new Array<bigint>(room).fill(0n);
  const heap = new Map<number, number | bigint>();
  const merged = new Map<number, number>();
  const descriptionOf = new Int32Array(stored);
  const names = new TextColumn(column("nameLengths"), column("names"), stored);
  const attach = (child: number, to: number) => {
    parent[child] = to;
    if (lastChild[to] < 0) firstChild[to] = child;
    else nextSibling[lastChild[to]] = child;
    lastChild[to] = child;
  };

  const childCounts = new NumberColumn(column("children"));
  const amounts = new NumberColumn(column("amounts"));
  const heaps = new NumberColumn(column("heaps"));
  const mergedCounts = new NumberColumn(column("merged"));
  const described = new NumberColumn(column("descriptionOf"));
  let descriptionCount = 0;
  // Inner nodes whose children are not read yet, and the number of these children.
  const open: number[] = [];
  const left: number[] = [];
  const leaves: number[] = [];
  for (let node = 0; node < stored; node++) {
    const children = childCounts.next();
    while (left.length > 0 && left[left.length - 1] === 0) {
      left.pop();
      open.pop();
    }
    if (open.length > 0) {
      left[left.length - 1]--;
      attach(node, open[open.length - 1]);
    }
    if (flags[node] & (1 << 5)) merged.set(node, mergedCounts.next());
    if (children > 0) {
      open.push(node);
      left.push(children);
      continue;
    }
    leaves.push(node);
    if (big) big[node] = amounts.nextBig();
    else amount[node] = amounts.nextSigned();
    if (((flags[node] >> 3) & 3) === 2) heap.set(node, big ? heaps.nextBig() : heaps.nextSigned());
    descriptionOf[node] = described.next();
    descriptionCount = Math.max(descriptionCount, descriptionOf[node] + 1);
  }

  let count = stored;
  let node = 0;
  const skipTree = () => {
    // The next root is the next node without a parent.
    const root = node++;
    while (node < stored && parent[node] >= 0) node++;
    return root;
  };
  const processes = header.processes.map(({ name, resident, ...size }) => {
    const trees = Array.from({ length: size.trees }, skipTree);
    const lines = Array.from({ length: size.lines }, skipTree);
    const explicit = trees.find((root) => names.get(root) === "explicit") ?? -1;
    const heapAllocated = lines.find((line) => names.get(line) === "heap-allocated") ?? -1;
    let heapUnclassified = -1;
    if (explicit >= 0 && heapAllocated >= 0) {
      heapUnclassified = count++;
      attach(heapUnclassified, explicit);
    }
    return { name, resident, trees, lines, explicit, heapAllocated, heapUnclassified };
  });

  const descriptions = new TextColumn(column("descriptionLengths"), column("descriptions"), descriptionCount);
  return {
    isDiff: header.is_diff,
    usableSizeKnown: header.usable_size_known,
    processes,
    setWarnings: header.set_warnings,
    treeWarnings: header.tree_warnings,
    count,
    shape: header.shape ?? "",
    leaves: Int32Array.from(leaves),
    parent,
    firstChild,
    nextSibling,
    flags,
    amount,
    big,
    heap,
    merged,
    descriptionOf,
    descriptions,
    names,
    flame: header.flame ? readFlame(header.flame, column) : null,
    heapView: header.heap ? readHeap(header.heap, column) : null,
  };
}
