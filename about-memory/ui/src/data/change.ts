// The change between two heaps. html/heap.rs writes it.

import { NumberColumn } from "./columns";
import type { RowAmounts } from "./stacks";

export interface ChangeHeader {
  before: string;
  after: string;
  estimated: boolean;
}

export interface Change {
  /** The names of the two heaps. */
  before: string;
  after: string;
  estimated: boolean;
  amounts: RowAmounts;
}

export function readChange(
  header: ChangeHeader,
  rows: number,
  column: (name: string) => Uint8Array,
): Change {
  const signed = (name: string) => {
    const from = new NumberColumn(column(name));
    return Float64Array.from({ length: rows }, () => from.nextSigned());
  };
  const before = { bytes: signed("bytesBefore"), blocks: signed("blocksBefore") };
  return { ...header, amounts: { bytes: signed("bytesAfter"), blocks: signed("blocksAfter"), before } };
}
