// The blocks of a dump, by how often reporters reported them. html/heap.rs writes this data.

import { NumberColumn } from "./columns";
import type { RowAmounts } from "./stacks";

export interface KindsHeader {
  kinds: string[];
  reporters: string[];
  estimated: boolean;
  /** Whether the data has swapped and untouched bytes. */
  resident?: boolean;
  /** The resident memory of the process by owner, as text. */
  memory?: string;
}

export interface BlockKinds {
  estimated: boolean;
  /** The resident memory of the process by owner, as text. */
  memory: string | null;
  /**
   * The title and the blocks of each kind. If there are several kinds, the first entry has all blocks. The last entries
   * are the reporters.
   */
  list: { title: string; amounts: RowAmounts; reporter: string | null }[];
}

export function readKinds(
  header: KindsHeader,
  rows: number,
  column: (name: string) => Uint8Array,
): BlockKinds {
  const from = [new NumberColumn(column("kindBytes")), new NumberColumn(column("kindBlocks"))];
  const next = (numbers: NumberColumn) => Float64Array.from({ length: rows }, () => numbers.nextSigned());
  const amounts = (): RowAmounts => ({ bytes: new Float64Array(), blocks: new Float64Array(), before: null });
  const list: BlockKinds["list"] = header.kinds.map((title) => ({ title, amounts: amounts(), reporter: null }));
  const reporters = header.reporters.map((reporter) => ({ title: `reported by ${reporter}`, amounts: amounts(), reporter }));
  const all = [...list, ...reporters];
  for (const { amounts } of all) amounts.bytes = next(from[0]);
  for (const { amounts } of all) amounts.blocks = next(from[1]);
  if (header.resident) {
    const [swapped, untouched] = [new NumberColumn(column("kindSwapped")), new NumberColumn(column("kindUntouched"))];
    for (const { amounts } of all) amounts.absent = { swapped: next(swapped), untouched: next(untouched) };
  }
  if (list.length > 1) {
    const sum = (of: (amounts: RowAmounts) => Float64Array) =>
      Float64Array.from({ length: rows }, (_, row) => list.reduce((all, { amounts }) => all + of(amounts)[row], 0));
    const amounts: RowAmounts = { bytes: sum(({ bytes }) => bytes), blocks: sum(({ blocks }) => blocks), before: null };
    if (header.resident) {
      const absent = (of: "swapped" | "untouched") => sum((amounts) => amounts.absent![of]);
      amounts.absent = { swapped: absent("swapped"), untouched: absent("untouched") };
    }
    list.unshift({ title: "All", amounts, reporter: null });
  }
  list.push(...reporters);
  return { estimated: header.estimated, memory: header.memory ?? null, list };
}

/**
 * Returns the index of the kind for a path: the reporter that the path belongs to; else the first reporter below the
 * path; else the unreported blocks for `heap-unclassified`; else all blocks.
 */
export function kindForPath({ list }: BlockKinds, path: string): number {
  const isBelow = (one: string, other: string) => one === other || one.startsWith(`${other}/`);
  let found = -1;
  list.forEach(({ reporter }, at) => {
    if (reporter === null) return;
    if (isBelow(path, reporter) && reporter.length > (list[found]?.reporter?.length ?? -1)) found = at;
  });
  if (found < 0) found = list.findIndex(({ reporter }) => reporter !== null && isBelow(reporter, path));
  if (found < 0 && path.includes("heap-unclassified")) found = list.findIndex(({ title }) => title === "Unreported");
  return Math.max(0, found);
}
