// A table of rows. The server sorts and filters the rows, and sends them in windows. The page keeps only visible
// windows and their neighbours.

import { create, setName, setTip, words } from "../widgets/elements";
import { VirtualList } from "../widgets/virtual_list";
import type { Api } from "./api";
import { retry } from "../widgets/controls";
import { bytes, count, percent } from "../text/format";
import type { OpenRows } from "./open_rows";

export interface TableRow {
  id: number;
  level: number;
  /** The index of the parent row. The page does not always have that row. */
  parent: number | null;
  name: string[];
  numbers: number[];
  children: number;
  open: boolean;
  /** Whether the page can show the nodes of the group. */
  behind: boolean;
  /** Whether the row is a node; otherwise it is a group. */
  node: boolean;
}

interface RowWindow {
  columns: string[];
  whole: number[];
  total: number;
  found: number;
  rows: TableRow[];
}

export interface TableOptions {
  query: Record<string, unknown>;
  /** Whether rows are nodes with addresses; otherwise they are groups. */
  isOfNodes: boolean;
  /** Whether the numbers are changes. */
  isDiff: boolean;
  /** The titles of columns that exist only in this table. */
  heads: Record<string, string>;
  label: string;
  /** The breakdown that names nodes. */
  names: string;
  /** The number of levels that open by themselves. */
  depth: number;
  sort: { column: string; ascending: boolean } | null;
  onSort: (column: string) => void;
  onFocus?: (row: TableRow) => void;
  /** Called to show the nodes of a group. */
  onBehind?: (row: TableRow) => void;
  /** The tooltip of the button that shows the nodes of a group. */
  behind: string;
  onState: (text: string, isError: boolean) => void;
  /** The open rows and the row with the focus, as in the address. */
  openRows: OpenRows;
  /** The status line until the first rows arrive. */
  busy: string;
  /**
   * Returns the status line for an answer without rows, or with the one row `only`. If the text is empty, the line
   * shows the number of rows.
   */
  empty: (only: TableRow | null) => string;
}

const WINDOW = 200;
/** The number of windows to keep: the visible windows and their neighbours. */
const MOST = 10;
const HEADS: Record<string, string> = {
  bytes: "Bytes",
  count: "Count",
  "total-bytes": "Total Bytes",
  "total-count": "Total Count",
  retained: "Retained",
  shallow: "Shallow",
  growth: "Growth",
};

export class Table {
  readonly element = create("div", "table windowed");
  private readonly heads = create("div", "heads");
  private readonly list = new VirtualList((row) => this.render(row));
  private windows = new Map<number, TableRow[]>();
  private readonly asked = new Map<number, AbortController>();
  private columns: string[] = [];
  private whole: number[] = [];
  private total = 0;
  /** Whether the windows contain rows from before a change. These rows stay visible until the first answer arrives. */
  private isStale = false;
  /** The number of changes of the open rows. Answers to requests from before the last change are ignored. */
  private turn = 0;

  constructor(
    private readonly api: Api,
    private readonly options: TableOptions,
  ) {
    const { element } = this.list;
    element.setAttribute("role", "tree");
    setName(element, options.label);
    element.addEventListener("click", (event) => this.clicked(event));
    element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.append(this.heads, element);
    options.onState(options.busy, false);
    const { at } = options.openRows;
    void this.load(at - (at % WINDOW));
  }

  private get active() {
    return this.options.openRows.at;
  }

  private set active(row: number) {
    this.options.openRows.at = row;
  }

  focus() {
    this.list.element.focus();
  }

  /** Ends all requests. */
  close() {
    this.turn++;
    for (const request of this.asked.values()) request.abort();
  }

  private async load(start: number) {
    if (this.asked.has(start)) return;
    const { turn } = this;
    // Cancels the requests for windows that the reader has scrolled past.
    for (const [other, old] of this.asked) {
      if (Math.abs(other - start) <= 2 * WINDOW) continue;
      old.abort();
      this.asked.delete(other);
    }
    const request = new AbortController();
    this.asked.set(start, request);
    try {
      const { query, sort, names, openRows, depth } = this.options;
      const rows = { start, count: WINDOW, depth, ...openRows.rows, ...(sort ? { sort } : {}), ...(names ? { label: names } : {}) };
      if (this.total > 0) this.options.onState("Fetching more…", false);
      const answer = await this.api.post<RowWindow>("query", { query, rows }, request.signal);
      if (turn !== this.turn) return;
      this.take(start, answer);
    } catch (error) {
      if (turn === this.turn && !request.signal.aborted) this.fail(error as Error);
    } finally {
      if (this.asked.get(start) === request) this.asked.delete(start);
    }
  }

  private take(start: number, answer: RowWindow) {
    const isFirst = this.columns.length === 0;
    if (this.isStale) this.windows = new Map();
    this.isStale = false;
    if (isFirst) this.drawHeads(answer.columns);
    this.whole = answer.whole;
    this.total = answer.total;
    this.windows.delete(start);
    this.windows.set(start, answer.rows);
    while (this.windows.size > MOST) this.windows.delete(this.windows.keys().next().value!);
    this.active = Math.max(0, Math.min(this.active, this.total - 1));
    this.list.update(this.total);
    if (isFirst) {
      this.list.reveal(this.active);
      this.list.draw();
      const row = this.row(this.active);
      if (row) this.options.onFocus?.(row);
    }
    const { found, total } = answer;
    const more = found > total ? ` of ${count(found)} found, those that retain most` : found < total ? `, ${count(found)} of them found` : "";
    const empty = total <= 1 && start === 0 ? this.options.empty(answer.rows[0] ?? null) : "";
    this.options.onState(empty || `${count(total)} row${total === 1 ? "" : "s"}${more}`, false);
    document.documentElement.dataset.rows = String(total);
  }

  /** Shows the error, and a button to try again. */
  private fail(error: Error) {
    this.options.onState(error.message, true);
    if (this.total > 0) return;
    this.element.querySelector(".retry")?.remove();
    const again = retry(() => {
      this.options.onState(this.options.busy, false);
      void this.load(0);
    });
    this.element.prepend(again);
  }

  private drawHeads(columns: string[]) {
    this.columns = columns;
    this.element.style.setProperty("--columns", String(columns.length));
    const { sort } = this.options;
    const heads = [...columns, "name"].map((column) => {
      const isSorted = sort?.column === column;
      const arrow = isSorted ? (sort.ascending ? " ▲" : " ▼") : "";
      const title = column === "name" ? (this.options.isOfNodes ? "Node" : "Group") : (this.options.heads[column] ?? HEADS[column]);
      const head = create("button", "", title + arrow);
      head.type = "button";
      head.setAttribute("aria-pressed", String(isSorted));
      setTip(head, `Sort by ${title}`);
      head.addEventListener("click", () => this.options.onSort(column));
      return head;
    });
    this.heads.replaceChildren(...heads);
  }

  private row(at: number): TableRow | undefined {
    const start = at - (at % WINDOW);
    return this.windows.get(start)?.[at - start];
  }

  private render(at: number): HTMLElement {
    const row = this.row(at);
    const element = create("div", at === this.active ? "row active" : "row");
    element.dataset.row = String(at);
    element.setAttribute("role", "treeitem");
    if (!row) {
      void this.load(at - (at % WINDOW));
      element.append(create("span", "branch", "…"));
      return element;
    }
    element.id = `row-${at}`;
    if (at === this.active) this.list.element.setAttribute("aria-activedescendant", element.id);
    element.setAttribute("aria-level", String(row.level + 1));
    if (row.children) element.setAttribute("aria-expanded", String(row.open));
    row.numbers.forEach((number, place) => {
      const cell = create("span", "number");
      const isCount = this.columns[place].endsWith("count");
      const isChange = this.options.isDiff || this.columns[place] === "growth";
      const sign = isChange && number > 0 ? "+" : "";
      if (isChange && number !== 0) cell.classList.add(number > 0 ? "grow" : "shrink");
      cell.append(create("span", "value", sign + (isCount ? count(number) : bytes(number))));
      cell.append(create("span", "percent", percent(number, this.whole[place])));
      setTip(cell, isCount ? count(number) : `${count(number)} B`);
      element.append(cell);
    });
    const label = create("span", "label");
    label.append(words("  ".repeat(row.level)), create("span", "branch", row.children ? (row.open ? "▾ " : "▸ ") : "  "));
    label.append(create("span", "name", row.name.join(" › ")));
    if (row.node) label.append(create("span", "address", ` @ 0x${row.id.toString(16)}`));
    else if (this.options.onBehind && row.behind) {
      const behind = create("button", "behind", "⁂");
      behind.type = "button";
      behind.tabIndex = -1;
      setTip(behind, `${this.options.behind} (key: i)`);
      label.append(behind);
    }
    setTip(label, row.name.join(" › "));
    element.append(label);
    return element;
  }

  private clicked(event: MouseEvent) {
    const target = event.target as Element;
    const element = target.closest<HTMLElement>(".row");
    if (!element) return;
    const row = this.row(Number(element.dataset.row));
    if (!row) return;
    if (target.closest(".behind")) return this.options.onBehind?.(row);
    this.go(Number(element.dataset.row));
    if (!target.closest(".branch")) return;
    if (event.altKey) this.change(() => this.options.openRows.below(row.id));
    else this.toggle(row, !row.open);
  }

  private toggle(row: TableRow, open: boolean) {
    if (!row.children || row.open === open) return;
    this.change(() => this.options.openRows.set(row.id, open));
  }

  /** Opens or closes rows, and requests the visible rows. */
  private change(how: () => void) {
    how();
    this.turn++;
    for (const request of this.asked.values()) request.abort();
    this.asked.clear();
    const { first, page } = this.list;
    this.isStale = true;
    // The visible rows may be in two windows.
    void this.load(first - (first % WINDOW));
    const last = first + page;
    if (last - (last % WINDOW) !== first - (first % WINDOW)) void this.load(last - (last % WINDOW));
  }

  private go(to: number) {
    this.active = Math.max(0, Math.min(to, this.total - 1));
    this.list.reveal(this.active);
    this.list.draw();
    this.list.element.setAttribute("aria-activedescendant", `row-${this.active}`);
    const row = this.row(this.active);
    if (row) this.options.onFocus?.(row);
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = this.row(this.active);
    const moves: Record<string, () => void> = {
      ArrowDown: () => this.go(this.active + 1),
      ArrowUp: () => this.go(this.active - 1),
      PageDown: () => this.go(this.active + this.list.page),
      PageUp: () => this.go(this.active - this.list.page),
      Home: () => this.go(0),
      End: () => this.go(this.total - 1),
      ArrowRight: () => (row?.children && !row.open ? this.toggle(row, true) : this.go(this.active + 1)),
      ArrowLeft: () => row && (row.open ? this.toggle(row, false) : this.go(row.parent ?? this.active)),
      Enter: () => row && this.toggle(row, !row.open),
      " ": () => row && this.toggle(row, !row.open),
      "*": () => row?.children && this.change(() => this.options.openRows.below(row.id)),
      i: () => row?.behind && this.options.onBehind?.(row),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }
}
