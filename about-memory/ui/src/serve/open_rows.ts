// The open rows of a table, and the row with the focus. The address contains both, so that a reload, a bookmark or a
// second tab shows the same rows. Rows are identified by number, so that they stay open with another filter, order,
// label or snapshot.

import { changed, readRoute, replaceAddress } from "./route";

/** An address contains at most this many rows of each kind. */
const MOST = 200;
/** Changes are written to the address after this many milliseconds. */
const RESTING = 300;

const write = (ids: Set<number>) => [...ids].slice(-MOST).map((id) => id.toString(36)).join(".");
const read = (text: string | null) =>
  new Set((text ?? "").split(".").map((id) => parseInt(id, 36)).filter(Number.isSafeInteger));

export class OpenRows {
  private readonly open: Set<number>;
  /** The rows that are open with all rows below them. */
  private readonly all: Set<number>;
  /** The rows that the reader closed and that would open by themselves. */
  private readonly closed: Set<number>;
  private row: number;
  private timer = 0;

  /** `byThemselves` is true if the view has rows that are open without an action of the reader. */
  constructor(
    query: URLSearchParams,
    private readonly byThemselves: boolean,
  ) {
    this.open = read(query.get("open"));
    this.all = read(query.get("all"));
    this.closed = read(query.get("closed"));
    this.row = Math.max(0, Number(query.get("at")) || 0);
  }

  /** The row that has the focus. */
  get at() {
    return this.row;
  }

  set at(row: number) {
    if (row === this.row) return;
    this.row = row;
    this.later();
  }

  /** Returns the values for a request for rows. */
  get rows() {
    return { open: [...this.open], open_below: [...this.all], closed: [...this.closed] };
  }

  /** Opens or closes a row. */
  set(id: number, open: boolean) {
    if (open) {
      this.open.add(id);
      this.closed.delete(id);
    } else {
      const byItself = !this.open.delete(id) || this.all.size > 0 || this.byThemselves;
      if (!this.all.delete(id) && byItself) this.closed.add(id);
    }
    this.later();
  }

  /** Opens a row with everything below. */
  below(id: number) {
    this.all.add(id);
    this.closed.clear();
    this.later();
  }

  /** Returns the values for the address. */
  get address(): Record<string, string> {
    clearTimeout(this.timer);
    const [open, all] = [write(this.open), write(this.all)];
    // `closed` contains only rows that would be open otherwise: below a row that is open with all rows, or in a view
    // whose rows open by themselves.
    return { open, all, closed: write(this.closed), at: this.row ? String(this.row) : "" };
  }

  private later() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => replaceAddress(changed(readRoute(), this.address)), RESTING);
  }

  close() {
    clearTimeout(this.timer);
  }
}
