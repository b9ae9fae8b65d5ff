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
  /** For each frame: the index of the name that is its file and line, plus 1; 0 if they are unknown. */
  placeOf: Int32Array;
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
  /** The index of the name. */
  number: number;
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
      all.set(number, { number, name: stacks.names.get(number), bytes, blocks, bytesBefore, blocksBefore, swapped, untouched });
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

/** A function name and the place of its largest stack: `Index::finish` and `src/index.rs:93`. */
export interface NameParts {
  name: string;
  place: string;
}

/** Separates the place at the end of a site's name. */
export function nameParts(text: string): NameParts {
  const [, name = text, place = ""] = /^(.+) \(([^()]+:\d+(?:\.\.\d+)?)\)$/.exec(text) ?? [];
  return { name, place };
}

/** A stack of a holder. */
export interface HolderStack {
  /** The index of the row. */
  row: number;
  bytes: number;
  blocks: number;
  bytesBefore: number;
  blocksBefore: number;
}

/** Returns the stacks of a holder, the largest first. In a change, the stacks that changed most are first. */
export function stacksOf(stacks: Stacks, key: HolderKey, number: number, amounts: RowAmounts): HolderStack[] {
  const all: HolderStack[] = [];
  for (let row = 0; row < stacks.rows; row++) {
    if (stacks.holders[key][row] !== number) continue;
    const [bytes, blocks] = [amounts.bytes[row], amounts.blocks[row]];
    const [bytesBefore, blocksBefore] = [amounts.before?.bytes[row] ?? 0, amounts.before?.blocks[row] ?? 0];
    if (bytes !== 0 || blocks !== 0 || bytesBefore !== 0 || blocksBefore !== 0) all.push({ row, bytes, blocks, bytesBefore, blocksBefore });
  }
  const size = ({ bytes, bytesBefore }: HolderStack) => Math.abs(bytes - bytesBefore);
  return all.sort((a, b) => size(b) - size(a));
}

/** Returns the frames of a row, the innermost first, without the root. */
export function framesOf(stacks: Stacks, row: number): number[] {
  const frames: number[] = [];
  for (let frame = stacks.frameOf[row]; frame > 0; frame = stacks.caller[frame]) frames.push(frame);
  return frames;
}

export const frameName = (stacks: Stacks, frame: number) => stacks.names.get(stacks.nameOf[frame]);
/** The file and the line of a frame; empty if they are unknown. */
export const framePlace = (stacks: Stacks, frame: number) => (stacks.placeOf[frame] === 0 ? "" : stacks.names.get(stacks.placeOf[frame] - 1));

/** Returns the last two parts of a function's path: `ranking::answer` of `code_search::ranking::answer`. */
export function shortName(name: string): string {
  // A part in brackets belongs to the part before it.
  let depth = 0;
  const parts = [""];
  for (const piece of name.split(/(::|[<>{}[\]()])/)) {
    if (/^[<{[(]$/.test(piece)) depth++;
    if (/^[>}\])]$/.test(piece)) depth--;
    if (piece === "::" && depth === 0) parts.push("");
    else parts[parts.length - 1] += piece;
  }
  const isClosure = (part: string) => part.startsWith("{");
  let from = parts.length - 1;
  while (from > 0 && isClosure(parts[from])) from--;
  return parts.slice(Math.max(0, from - 1)).join("::");
}
