// A recording by slices of its time. html/heap.rs writes this data.
//
// Slice n starts after bound n - 1 and ends with bound n. Slice 0 is the time up to the first bound, and contains the
// blocks that are older than the recording. The blocks of a cell belong to one row, started in the same slice, and
// ended in the same slice.

import { NumberColumn } from "./columns";
import type { RowAmounts } from "./stacks";

export interface TimelineHeader {
  bounds: number;
  steps: number;
  cells: number;
  peak: number;
  starts_at_peak: boolean;
  is_complete: boolean;
  began_late: boolean;
}

/**
 * The blocks that the views show: the blocks that started in the time range and are alive at its end, all blocks that
 * are alive at its end, or all blocks that started in the time range.
 */
export type ShownBlocks = "kept" | "alive" | "allocated";

export interface Timeline {
  /** Nanoseconds since the start, ascending. */
  bounds: Float64Array;
  /** The index of the bound at the peak. */
  peak: number;
  startsAtPeak: boolean;
  isComplete: boolean;
  beganLate: boolean;
  steps: { ends: Float64Array; highest: Float64Array; allocated: Float64Array; allocations: Float64Array };
  /** The first cell of each row, and as last element the number of cells. */
  firstCell: Int32Array;
  began: Uint16Array;
  /** The slice in which the cell's blocks ended; the number of bounds if the blocks are alive at the end. */
  ended: Uint16Array;
  bytes: Float64Array;
  blocks: Float64Array;
}

export function readTimeline(
  header: TimelineHeader,
  rows: number,
  column: (name: string) => Uint8Array,
): Timeline {
  const numbers = (name: string, count: number) => {
    const from = new NumberColumn(column(name));
    return Float64Array.from({ length: count }, () => from.next());
  };
  const signed = (name: string, count: number) => {
    const from = new NumberColumn(column(name));
    const all = new Float64Array(count);
    for (let i = 0; i < count; i++) all[i] = from.nextSigned();
    return all;
  };
  const times = (name: string, count: number) => {
    const all = numbers(name, count);
    for (let i = 1; i < count; i++) all[i] += all[i - 1];
    return all;
  };
  const counts = new NumberColumn(column("cellCounts"));
  const from = new NumberColumn(column("cellBegan"));
  const lasted = new NumberColumn(column("cellLasted"));
  const firstCell = new Int32Array(rows + 1);
  const began = new Uint16Array(header.cells);
  const ended = new Uint16Array(header.cells);
  let cell = 0;
  for (let row = 0; row < rows; row++) {
    firstCell[row] = cell;
    let last = 0;
    for (const end = cell + counts.next(); cell < end; cell++) {
      began[cell] = last += from.next();
      ended[cell] = last + lasted.next();
    }
  }
  firstCell[rows] = cell;
  return {
    bounds: times("timeBounds", header.bounds),
    peak: header.peak,
    startsAtPeak: header.starts_at_peak,
    isComplete: header.is_complete,
    beganLate: header.began_late,
    steps: {
      ends: times("timeEnds", header.steps),
      highest: signed("timeHighest", header.steps),
      allocated: numbers("timeAllocated", header.steps),
      allocations: numbers("timeAllocations", header.steps),
    },
    firstCell,
    began,
    ended,
    bytes: signed("cellBytes", header.cells),
    blocks: signed("cellBlocks", header.cells),
  };
}

/** Returns the blocks of each row between two bounds. For live blocks, the first bound has no effect. */
export function select(timeline: Timeline, from: number, to: number, shown: ShownBlocks): RowAmounts {
  const { firstCell, began, ended } = timeline;
  const rows = firstCell.length - 1;
  const bytes = new Float64Array(rows);
  const blocks = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    for (let cell = firstCell[row]; cell < firstCell[row + 1]; cell++) {
      // The cells of a row are in ascending order.
      if (began[cell] > to) break;
      if (shown !== "alive" && began[cell] <= from) continue;
      if (shown !== "allocated" && ended[cell] <= to) continue;
      bytes[row] += timeline.bytes[cell];
      blocks[row] += timeline.blocks[cell];
    }
  }
  return { bytes, blocks, before: null };
}
