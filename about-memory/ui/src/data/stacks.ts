// Stacks as rows: a tree of frames, and for each row its innermost frame, site, type and crate.

import type { TextColumn } from "./columns";

/** The keys of a row's holders, in the order of the data. */
export const KEYS = ["site", "type", "crate"] as const;
export type HolderKey = 0 | 1 | 2;

export interface Stacks {
  names: TextColumn;
  /** The caller of each frame, in preorder; -1 for the root. */
  caller: Int32Array;
  nameOf: Int32Array;
  /** The number of rows. */
  rows: number;
  /** The innermost frame of each row. */
  frameOf: Int32Array;
  /** For each key: the index of the name of each row's holder. */
  holders: [Int32Array, Int32Array, Int32Array];
  /** The number of stacks that share rows. */
  merged: number;
}

/** The blocks of each row. */
export interface RowAmounts {
  bytes: Float64Array;
  blocks: Float64Array;
  /** The earlier blocks of each row in a change; otherwise `null`. */
  before: { bytes: Float64Array; blocks: Float64Array } | null;
  /** The bytes of each row that are not in memory, if the dump has them. */
  absent?: { swapped: Float64Array; untouched: Float64Array };
}

/** A holder under a key, with the sums of its rows. */
export interface HolderSums {
  name: string;
  bytes: number;
  blocks: number;
  bytesBefore: number;
  blocksBefore: number;
  /** Bytes that are swapped out, and bytes without memory. */
  swapped: number;
  untouched: number;
}

/** Returns the holders that have blocks or, in a change, had blocks before. */
export function holders(stacks: Stacks, key: HolderKey, amounts: RowAmounts): HolderSums[] {
  const { before, absent } = amounts;
  const all = new Map<number, HolderSums>();
  for (let row = 0; row < stacks.rows; row++) {
    const [bytes, blocks] = [amounts.bytes[row], amounts.blocks[row]];
    const bytesBefore = before?.bytes[row] ?? 0;
    const blocksBefore = before?.blocks[row] ?? 0;
    if (bytes === 0 && blocks === 0 && bytesBefore === 0 && blocksBefore === 0) continue;
    const [swapped, untouched] = [absent?.swapped[row] ?? 0, absent?.untouched[row] ?? 0];
    const number = stacks.holders[key][row];
    const known = all.get(number);
    if (!known) {
      all.set(number, { name: stacks.names.get(number), bytes, blocks, bytesBefore, blocksBefore, swapped, untouched });
      continue;
    }
    known.bytes += bytes;
    known.blocks += blocks;
    known.bytesBefore += bytesBefore;
    known.blocksBefore += blocksBefore;
    known.swapped += swapped;
    known.untouched += untouched;
  }
  return [...all.values()];
}
