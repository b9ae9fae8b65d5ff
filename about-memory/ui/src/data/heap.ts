// The stacks of a recording, of a change or of a dump. html/heap.rs writes this data.

import { type Change, type ChangeHeader, readChange } from "./change";
import { NumberColumn, TextColumn } from "./columns";
import { type BlockKinds, type KindsHeader, readKinds } from "./kinds";
import type { Stacks } from "./stacks";
import { readTimeline, type Timeline, type TimelineHeader } from "./timeline";

export interface HeapHeader {
  names: number;
  frames: number;
  rows: number;
  merged: number;
  facts?: HeapFacts;
  timeline?: TimelineHeader;
  change?: ChangeHeader;
  blocks?: KindsHeader;
}

/** Facts that the blocks do not contain. A text is empty if there are none. */
export interface HeapFacts {
  /** The lines about the peak, the end and the allocations. */
  life: string;
  /** The resident memory of the process by owner. */
  memory: string;
  /** What the reader can build or start differently to see more. */
  advice: string;
}

/** The data that the page shows instead of reports. */
export interface Heap {
  stacks: Stacks;
  facts: HeapFacts | null;
  timeline: Timeline | null;
  change: Change | null;
  kinds: BlockKinds | null;
}

export function readHeap(header: HeapHeader, column: (name: string) => Uint8Array): Heap {
  const caller = new Int32Array(header.frames).fill(-1);
  const children = new NumberColumn(column("heapChildren"));
  // Frames whose callees are not read yet, and the number of these callees.
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
    const from = new NumberColumn(column(name));
    return Int32Array.from({ length: count }, () => from.next());
  };
  const stacks: Stacks = {
    names: new TextColumn(column("heapNameLengths"), column("heapNames"), header.names),
    caller,
    nameOf: numbers("heapNameOf", header.frames),
    placeOf: numbers("heapPlaceOf", header.frames),
    rows: header.rows,
    frameOf: numbers("heapFrame", header.rows),
    holders: [numbers("heapSite", header.rows), numbers("heapType", header.rows), numbers("heapCrate", header.rows)],
    merged: header.merged,
  };
  return {
    stacks,
    facts: header.facts ?? null,
    timeline: header.timeline ? readTimeline(header.timeline, header.rows, column) : null,
    change: header.change ? readChange(header.change, header.rows, column) : null,
    kinds: header.blocks ? readKinds(header.blocks, header.rows, column) : null,
  };
}
