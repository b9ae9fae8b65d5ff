// The holders of memory by site, type or crate, as a table. A row opens to its stacks, and a stack to its frames. For a
// change, the table shows both sides.

import { formatAmount, formatBytes, shareText, Units } from "../text/amount";
import { create, setName, setText, setTip } from "../widgets/elements";
import { makeFilter } from "../model/filter";
import type { Model } from "../model/model";
import { frameName, framePlace, framesOf, type HolderKey, type HolderSums, holders, KEYS, nameParts, type RowAmounts, shortName, type Stacks } from "../data/stacks";
import { button } from "../widgets/controls";
import { copyText } from "../widgets/clipboard";
import { type HeapActions, pathOfRow, stackText } from "./heap_actions";
import { type TableRow, TableRows } from "./table_rows";
import type { View } from "./view";
import { VirtualList } from "../widgets/virtual_list";

interface Column {
  title: string;
  /** The sort key; `null` for the name. */
  value: ((of: Amounts) => number) | null;
  text: (of: Amounts) => string;
}

type Amounts = Omit<HolderSums, "number" | "name">;

/** The rows of a change that a reader may select. */
const WHICH: Record<string, (holder: HolderSums) => boolean> = {
  all: () => true,
  new: ({ blocks, blocksBefore }) => blocksBefore === 0 && blocks !== 0,
  removed: ({ blocks, blocksBefore }) => blocksBefore !== 0 && blocks === 0,
  changed: ({ bytes, blocks, bytesBefore, blocksBefore }) => bytes !== bytesBefore || blocks !== blocksBefore,
};

export class TableView implements View {
  readonly id = "table";
  readonly title = "Table";
  readonly element = create("div", "table");
  private readonly list = new VirtualList((row) => this.render(row));
  private readonly choice = create("select");
  /** The choice of the rows of a change to show. */
  private readonly which = create("select");
  private readonly about = create("output", "about");
  private readonly head = create("div", "head");
  private readonly columns: Column[];
  private amounts: RowAmounts;
  private readonly lines: TableRows;
  private readonly actions = create("span", "actions");
  private total = 0;
  private sortedBy = 0;
  private ascending = false;
  private active = 0;

  constructor(
    private readonly stacks: Stacks,
    amounts: RowAmounts,
    private readonly model: Model,
    private readonly estimated: boolean,
    private readonly todo: HeapActions,
  ) {
    this.lines = new TableRows(stacks);
    this.amounts = amounts;
    this.columns = amounts.before ? this.changeColumns() : this.timeColumns();
    KEYS.forEach((key, index) => {
      const option = create("option", "", `by ${key}`);
      option.value = String(index);
      this.choice.append(option);
    });
    setName(this.choice, "Rows");
    this.choice.addEventListener("change", () => this.update());
    for (const name of Object.keys(WHICH)) {
      const option = create("option", "", name);
      option.value = name;
      this.which.append(option);
    }
    // Rows without a change answer no question about a change.
    this.which.value = "changed";
    setName(this.which, "Changes");
    this.which.addEventListener("change", () => this.update());
    const bar = create("div", "bar");
    bar.append(this.choice, ...(amounts.before ? [this.which] : []), this.about, this.actions);
    this.head.setAttribute("role", "row");
    const table = create("div", "grid");
    table.setAttribute("role", "treegrid");
    setName(table, "Holders of memory");
    this.list.element.setAttribute("role", "rowgroup");
    this.list.element.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>(".row");
      if (!row) return;
      this.active = Number(row.dataset.row);
      // A reader who selects text in a row does not want to open the row.
      if (String(getSelection()) === "") this.toggle();
      this.moveTo(this.active);
    });
    this.list.element.addEventListener("keydown", (event) => this.pressed(event));
    table.append(this.head, this.list.element);
    this.element.append(bar, table);
  }

  get focused(): HTMLElement {
    return this.list.element;
  }

  private get by(): HolderKey {
    return Number(this.choice.value) as HolderKey;
  }

  /** The holder of the row that keys act on: the kind of its table and its name. */
  get row(): { by: string; name: string } | null {
    let at = this.active;
    while (this.lines.rows[at] && this.lines.rows[at].kind !== "holder") at = this.lines.parent(at);
    const row = this.lines.rows[at];
    return row?.kind === "holder" ? { by: KEYS[this.by], name: row.holder.name } : null;
  }

  /** Shows the table by a key, with the row of this name open. Without a name, shows the first row. */
  openRow(by: number, name: string) {
    this.choice.value = String(by);
    this.active = 0;
    this.update();
    const at = this.lines.rows.findIndex((row) => row.kind === "holder" && row.holder.name === name);
    if (at < 0) return this.list.goTo(0);
    this.lines.toggle(this.by, this.lines.rows[at], true);
    this.active = at;
    this.update();
    this.list.goTo(at);
  }

  /** Opens or closes the active row. */
  private toggle(open?: boolean) {
    const row = this.lines.rows[this.active];
    if (row && this.lines.toggle(this.by, row, open)) this.update();
  }

  /** Returns the stack of the active row, or the largest stack of its holder. */
  private stackRow(): number | null {
    const row = this.lines.rows[this.active];
    if (row?.kind === "stack" || row?.kind === "frame") return row.stack.row;
    if (row?.kind !== "holder") return null;
    const { bytes } = this.amounts;
    let largest: number | null = null;
    for (let at = 0; at < this.stacks.rows; at++) {
      if (this.stacks.holders[this.by][at] === row.holder.number && (largest === null || bytes[at] > bytes[largest])) largest = at;
    }
    return largest;
  }

  /** Draws the buttons for the active row. */
  private drawActions() {
    const row = this.lines.rows[this.active];
    const stack = this.stackRow();
    if (!row || stack === null) return this.actions.replaceChildren();
    const path = pathOfRow(this.stacks, stack);
    const part = row.kind === "frame" ? path.slice(0, path.length - framesOf(this.stacks, stack).indexOf(row.frame)) : path;
    // The site's name is short; the frame's name ends with it.
    const { name } = nameParts(this.stacks.names.get(this.stacks.holders[0][stack]));
    const site = row.kind === "frame" ? part[part.length - 1] : ([...path].reverse().find((frame) => frame.endsWith(name)) ?? path[path.length - 1]);
    this.actions.replaceChildren(
      button("Flame graph", () => this.todo.showFlame(part), "Shows this stack in the flame graph"),
      button("Callers", () => this.todo.showCallers(site ?? ""), `Shows the callers and callees of ${site}`),
      button("Copy stack", () => void copyText(stackText(this.stacks, stack)), "Copies the frames with file and line"),
    );
  }

  /** Shows other amounts. */
  show(amounts: RowAmounts) {
    this.amounts = amounts;
  }

  update() {
    const { filter } = makeFilter(this.model.settings.filter, this.model.settings.regex);
    const all = holders(this.stacks, this.by, this.amounts);
    const isWanted = WHICH[this.which.value];
    const rows = all.filter((holder) => (!filter || filter.accepts(holder.name)) && (!this.amounts.before || isWanted(holder)));
    this.total = this.amounts.bytes.reduce((sum, bytes) => sum + bytes, 0);
    const { value } = this.columns[this.sortedBy];
    const order = this.ascending ? 1 : -1;
    const byName = (a: HolderSums, b: HolderSums) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    rows.sort((a, b) => (value ? order * (value(a) - value(b)) || byName(a, b) : order * byName(a, b)));
    this.lines.update(this.by, rows, this.amounts);
    this.active = Math.max(0, Math.min(this.active, this.lines.rows.length - 1));
    const plural = rows.length === 1 ? "" : "s";
    setText(this.about, `${formatAmount(rows.length, Units.Count, true)} row${plural}`);
    this.drawHead();
    this.drawActions();
    this.list.update(this.lines.rows.length);
  }

  private timeColumns(): Column[] {
    return [
      { title: "bytes", value: ({ bytes }) => bytes, text: ({ bytes }) => this.bytes(bytes) },
      ...this.residentColumns(),
      { title: "share", value: ({ bytes }) => bytes, text: ({ bytes }) => shareText(bytes, this.total) },
      { title: "blocks", value: ({ blocks }) => blocks, text: ({ blocks }) => this.count(blocks) },
      { title: "name", value: null, text: () => "" },
    ];
  }

  /** Returns columns for the bytes in memory, in swap and without memory, if the dump has these amounts. */
  private residentColumns(): Column[] {
    const { absent } = this.amounts;
    if (!absent) return [];
    const column = (title: string, value: (of: Amounts) => number): Column => ({
      title,
      value,
      text: (holder) => this.bytes(value(holder)),
    });
    const hasSwap = absent.swapped.some((bytes) => bytes !== 0);
    return [
      column("resident", ({ bytes, swapped, untouched }) => bytes - swapped - untouched),
      ...(hasSwap ? [column("swapped", ({ swapped }) => swapped)] : []),
      column("untouched", ({ untouched }) => untouched),
    ];
  }

  private changeColumns(): Column[] {
    const bytes = (of: Amounts) => of.bytes - of.bytesBefore;
    const blocks = (of: Amounts) => of.blocks - of.blocksBefore;
    const signed = (amount: number, text: string) => (amount > 0 ? `+${text}` : text);
    return [
      { title: "change", value: (holder) => Math.abs(bytes(holder)), text: (holder) => signed(bytes(holder), this.bytes(bytes(holder))) },
      { title: "before", value: (holder) => holder.bytesBefore, text: (holder) => this.bytes(holder.bytesBefore) },
      { title: "after", value: (holder) => holder.bytes, text: (holder) => this.bytes(holder.bytes) },
      { title: "blocks", value: (holder) => Math.abs(blocks(holder)), text: (holder) => signed(blocks(holder), this.count(blocks(holder))) },
      { title: "name", value: null, text: () => "" },
    ];
  }

  private bytes(amount: number): string {
    return (this.estimated ? "~" : "") + formatBytes(amount, this.model.settings.verbose);
  }

  private count(amount: number): string {
    return (this.estimated ? "~" : "") + formatAmount(amount, Units.Count, true);
  }

  private drawHead() {
    this.head.replaceChildren(
      ...this.columns.map(({ title, value }, index) => {
        const isSorted = index === this.sortedBy;
        const cell = create("span", value ? "cell" : "name");
        cell.setAttribute("role", "columnheader");
        cell.setAttribute("aria-sort", !isSorted ? "none" : this.ascending ? "ascending" : "descending");
        const button = create("button", "", title + (isSorted ? (this.ascending ? " ▲" : " ▼") : ""));
        button.type = "button";
        button.addEventListener("click", () => {
          // The first click on a column sorts amounts from the largest, and names from the start of the alphabet.
          this.ascending = isSorted ? !this.ascending : value === null;
          this.sortedBy = index;
          this.update();
          this.head.querySelectorAll("button")[index].focus();
        });
        cell.append(button);
        return cell;
      }),
    );
  }

  private render(at: number): HTMLElement {
    const row = this.lines.rows[at];
    const element = create("div", `row ${row.kind}`);
    element.setAttribute("role", "row");
    element.dataset.row = String(at);
    if (at === this.active) element.classList.add("active");
    const level = row.kind === "holder" ? 1 : row.kind === "frame" ? 3 : 2;
    element.setAttribute("aria-level", String(level));
    if (row.kind === "holder" || row.kind === "stack") {
      element.classList.add("toggle");
      element.setAttribute("aria-expanded", String(this.lines.isOpen(this.by, row)));
    }
    const amounts = row.kind === "holder" ? row.holder : row.kind === "stack" ? { swapped: 0, untouched: 0, ...row.stack } : null;
    const change = amounts ? amounts.bytes - amounts.bytesBefore : 0;
    if (this.amounts.before && change !== 0) element.classList.add(change > 0 ? "grown" : "shrunk");
    for (const { value, text } of this.columns) {
      const cell = value ? create("span", "cell", amounts ? text(amounts) : "") : this.name(row);
      cell.setAttribute("role", "gridcell");
      element.append(cell);
    }
    return element;
  }

  /** Returns the cell of a row's name. */
  private name(row: TableRow): HTMLElement {
    const { stacks } = this;
    if (row.kind === "holder") {
      const cell = create("span", "name", row.holder.name);
      setTip(cell, row.holder.name);
      return cell;
    }
    if (row.kind === "more") return create("span", "name", `${formatAmount(row.left, Units.Count, true)} more stacks`);
    if (row.kind === "stack") {
      const names = framesOf(stacks, row.stack.row).map((frame) => frameName(stacks, frame));
      const cell = create("span", "name", names.slice(0, 6).map(shortName).join(" ← ") + (names.length > 6 ? " …" : ""));
      setTip(cell, ...names);
      return cell;
    }
    const cell = create("span", "name", frameName(stacks, row.frame));
    const place = framePlace(stacks, row.frame);
    if (place) cell.append(" ", create("small", "", place));
    setTip(cell, frameName(stacks, row.frame), place);
    return cell;
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + this.list.page,
      PageUp: this.active - this.list.page,
      Home: 0,
      End: this.lines.rows.length - 1,
    };
    const row = this.lines.rows[this.active];
    const isOpen = row !== undefined && this.lines.isOpen(this.by, row);
    if (event.key === "Enter" || event.key === " ") this.toggle();
    else if (event.key === "ArrowRight") isOpen ? this.moveTo(this.active + 1) : this.toggle(true);
    else if (event.key === "ArrowLeft") isOpen ? this.toggle(false) : this.moveTo(this.lines.parent(this.active));
    else if (event.key in moves) this.moveTo(moves[event.key]);
    else return;
    event.preventDefault();
  }

  private moveTo(row: number) {
    this.active = Math.max(0, Math.min(row, this.lines.rows.length - 1));
    this.drawActions();
    this.list.reveal(this.active);
    this.list.draw();
  }
}
