// Stacks as rows: a tree of frames, and for each row its innermost frame, site, type and crate. html/heap.rs writes them.

import { type Change, readChange } from "./change";
import { Numbers, Texts } from "./columns";
import { type Kinds, readKinds } from "./kinds";
import { readTimeline, type Timeline } from "./timeline";

export interface HeapHeader {
  names: number;
  frames: number;
  rows: number;
  merged: number;
  timeline?: { bounds: number; steps: number; cells: number; peak: number; starts_at_peak: boolean; is_complete: boolean; began_late: boolean };
  change?: { before: string; after: string; estimated: boolean };
  blocks?: { kinds: string[]; reporters: string[]; estimated: boolean };
}

/** The keys of a row's holders, in the order of the data. */
export const KEYS = ["site", "type", "crate"] as const;
export type Key = 0 | 1 | 2;

export interface Stacks {
  names: Texts;
  /** For each frame in preorder, its caller; -1 for the root. */
  caller: Int32Array;
  nameOf: Int32Array;
  /** The number of rows. */
  rows: number;
  /** The innermost frame of each row. */
  frameOf: Int32Array;
  /** The name of each row's holder under each key. */
  holders: [Int32Array, Int32Array, Int32Array];
  /** Stacks that share rows. */
  merged: number;
}

/** What the page shows in place of reports. */
export interface Heap {
  stacks: Stacks;
  timeline: Timeline | null;
  change: Change | null;
  kinds: Kinds | null;
}

/** The blocks of each row. */
export interface Amounts {
  bytes: Float64Array;
  blocks: Float64Array;
  /** Of a change, the same before. */
  before: { bytes: Float64Array; blocks: Float64Array } | null;
}

export function readHeap(header: HeapHeader, column: (name: string) => Uint8Array): Heap {
  const caller = new Int32Array(header.frames).fill(-1);
  const children = new Numbers(column("heapChildren"));
  // Frames with callees still to come, and how many.
  const open: number[] = [];
  const left: number[] = [];
  for (let frame = 0; frame < header.frames; frame++) {
    while (left.length > 0 && left[left.length - 1] === 0) {
      left.pop();
      open.pop();
    }
    if (open.length > 0) {
      left[left.length - 1]--;
      caller[frame] = open[open.length - 1];
    }
    const count = children.next();
    if (count === 0) continue;
    open.push(frame);
    left.push(count);
  }
  const numbers = (name: string, count: number) => {
    const from = new Numbers(column(name));
    return Int32Array.from({ length: count }, () => from.next());
  };
  const stacks: Stacks = {
    names: new Texts(column("heapNameLengths"), column("heapNames"), header.names),
    caller,
    nameOf: numbers("heapNameOf", header.frames),
    rows: header.rows,
    frameOf: numbers("heapFrame", header.rows),
    holders: [numbers("heapSite", header.rows), numbers("heapType", header.rows), numbers("heapCrate", header.rows)],
    merged: header.merged,
  };
  return {
    stacks,
    timeline: header.timeline ? readTimeline(header.timeline, header.rows, column) : null,
    change: header.change ? readChange(header.change, header.rows, column) : null,
    kinds: header.blocks ? readKinds(header.blocks, header.rows, column) : null,
  };
}

/** A holder under a key, with the sums of its rows. */
export interface Holder {
  name: string;
  bytes: number;
  blocks: number;
  bytesBefore: number;
  blocksBefore: number;
}

/** The holders that have or had blocks. */
export function holders(stacks: Stacks, key: Key, amounts: Amounts): Holder[] {
  const { before } = amounts;
  const all = new Map<number, Holder>();
  for (let row = 0; row < stacks.rows; row++) {
    const [bytes, blocks] = [amounts.bytes[row], amounts.blocks[row]];
    const bytesBefore = before?.bytes[row] ?? 0;
    const blocksBefore = before?.blocks[row] ?? 0;
    if (bytes === 0 && blocks === 0 && bytesBefore === 0 && blocksBefore === 0) continue;
    const number = stacks.holders[key][row];
    const known = all.get(number);
    if (!known) {
      all.set(number, { name: stacks.names.get(number), bytes, blocks, bytesBefore, blocksBefore });
      continue;
    }
    known.bytes += bytes;
    known.blocks += blocks;
    known.bytesBefore += bytesBefore;
    known.blocksBefore += blocksBefore;
  }
  return [...all.values()];
}
