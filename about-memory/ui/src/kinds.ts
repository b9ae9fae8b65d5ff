// The blocks of a dump by how often reporters reported them. html/heap.rs writes them.

import { Numbers } from "./columns";
import type { Amounts, HeapHeader } from "./stacks";

export interface Kinds {
  estimated: boolean;
  /** The title and the blocks of each kind; of several kinds, first those of all. */
  list: { title: string; amounts: Amounts }[];
}

export function readKinds(
  header: NonNullable<HeapHeader["blocks"]>,
  rows: number,
  column: (name: string) => Uint8Array,
): Kinds {
  const from = [new Numbers(column("kindBytes")), new Numbers(column("kindBlocks"))];
  const next = (numbers: Numbers) => Float64Array.from({ length: rows }, () => numbers.nextSigned());
  const list = header.kinds.map((title) => ({ title, amounts: { bytes: new Float64Array(), blocks: new Float64Array(), before: null } as Amounts }));
  for (const { amounts } of list) amounts.bytes = next(from[0]);
  for (const { amounts } of list) amounts.blocks = next(from[1]);
  if (list.length > 1) {
    const sum = (of: "bytes" | "blocks") =>
      Float64Array.from({ length: rows }, (_, row) => list.reduce((all, { amounts }) => all + amounts[of][row], 0));
    list.unshift({ title: "All", amounts: { bytes: sum("bytes"), blocks: sum("blocks"), before: null } });
  }
  return { estimated: header.estimated, list };
}
