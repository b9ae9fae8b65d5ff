// The visible rows of a table: holders, and below an open holder its stacks, and below an open stack its frames.

import { framesOf, type HolderKey, type HolderStack, type HolderSums, type RowAmounts, type Stacks, stacksOf } from "../data/stacks";

export type TableRow =
  | { kind: "holder"; holder: HolderSums }
  | { kind: "stack"; holder: HolderSums; stack: HolderStack }
  | { kind: "frame"; stack: HolderStack; frame: number }
  | { kind: "more"; left: number };

/** At most this many stacks of a holder are shown. */
const MOST = 500;

export class TableRows {
  /** The open rows, by key. */
  private readonly open = new Set<string>();
  rows: TableRow[] = [];

  constructor(private readonly stacks: Stacks) {}

  /** Returns the key of a row that opens; `null` for other rows. */
  private keyOf(by: HolderKey, row: TableRow): string | null {
    if (row.kind === "holder") return `${by}:${row.holder.number}`;
    return row.kind === "stack" ? `${by}:${row.holder.number}:${row.stack.row}` : null;
  }

  isOpen(by: HolderKey, row: TableRow): boolean {
    return this.open.has(this.keyOf(by, row) ?? "");
  }

  /** Opens or closes a row. Returns whether the row can open. */
  toggle(by: HolderKey, row: TableRow, open = !this.isOpen(by, row)): boolean {
    const key = this.keyOf(by, row);
    if (key === null) return false;
    if (open) this.open.add(key);
    else this.open.delete(key);
    return true;
  }

  /** Makes the rows. If a holder has one stack, the stack opens with it. */
  update(by: HolderKey, holders: HolderSums[], amounts: RowAmounts) {
    this.rows = [];
    for (const holder of holders) {
      this.rows.push({ kind: "holder", holder });
      if (!this.open.has(`${by}:${holder.number}`)) continue;
      const all = stacksOf(this.stacks, by, holder.number, amounts);
      for (const stack of all.slice(0, MOST)) {
        this.rows.push({ kind: "stack", holder, stack });
        if (all.length > 1 && !this.open.has(`${by}:${holder.number}:${stack.row}`)) continue;
        for (const frame of framesOf(this.stacks, stack.row)) this.rows.push({ kind: "frame", stack, frame });
      }
      if (all.length > MOST) this.rows.push({ kind: "more", left: all.length - MOST });
    }
  }

  /** Returns the index of the row around a row. */
  parent(at: number): number {
    const level = (row: TableRow) => ["holder", "stack", "frame"].indexOf(row.kind === "more" ? "stack" : row.kind);
    for (let above = at - 1; above >= 0; above--) if (level(this.rows[above]) < level(this.rows[at])) return above;
    return at;
  }
}
