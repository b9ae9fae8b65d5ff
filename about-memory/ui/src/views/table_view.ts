// The holders of memory by site, type or crate, as a table. For a change, the table shows both sides.

import { formatAmount, formatBytes, formatShare, Units } from "../text/amount";
import { create, setName, setText, setTip } from "../widgets/elements";
import { makeFilter } from "../model/filter";
import type { Model } from "../model/model";
import { type RowAmounts, type HolderSums, holders, type HolderKey, KEYS, type Stacks } from "../data/stacks";
import type { View } from "./view";
import { VirtualList } from "../widgets/virtual_list";

interface Column {
  title: string;
  /** The sort key; `null` for the name. */
  value: ((holder: HolderSums) => number) | null;
  text: (holder: HolderSums) => string;
}

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
  private rows: HolderSums[] = [];
  private total = 0;
  private sortedBy = 0;
  private ascending = false;
  private active = 0;

  constructor(
    private readonly stacks: Stacks,
    amounts: RowAmounts,
    private readonly model: Model,
    private readonly estimated: boolean,
  ) {
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
    setName(this.which, "Changes");
    this.which.addEventListener("change", () => this.update());
    const bar = create("div", "bar");
    bar.append(this.choice, ...(amounts.before ? [this.which] : []), this.about);
    this.head.setAttribute("role", "row");
    const table = create("div", "grid");
    table.setAttribute("role", "table");
    setName(table, "Holders of memory");
    this.list.element.setAttribute("role", "rowgroup");
    this.list.element.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>(".row");
      if (row) this.moveTo(Number(row.dataset.row));
    });
    this.list.element.addEventListener("keydown", (event) => this.pressed(event));
    table.append(this.head, this.list.element);
    this.element.append(bar, table);
  }

  get focused(): HTMLElement {
    return this.list.element;
  }

  /** The row that keys act on: the kind of its table and its name. */
  get row(): { by: string; name: string } | null {
    const holder = this.rows[this.active];
    return holder ? { by: KEYS[Number(this.choice.value)], name: holder.name } : null;
  }

  /** Shows other amounts. */
  show(amounts: RowAmounts) {
    this.amounts = amounts;
  }

  update() {
    const { filter } = makeFilter(this.model.settings.filter, this.model.settings.regex);
    const all = holders(this.stacks, Number(this.choice.value) as HolderKey, this.amounts);
    const isWanted = WHICH[this.which.value];
    this.rows = all.filter((holder) => (!filter || filter.accepts(holder.name)) && (!this.amounts.before || isWanted(holder)));
    this.total = this.amounts.bytes.reduce((sum, bytes) => sum + bytes, 0);
    const { value } = this.columns[this.sortedBy];
    const order = this.ascending ? 1 : -1;
    const byName = (a: HolderSums, b: HolderSums) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    this.rows.sort((a, b) => (value ? order * (value(a) - value(b)) || byName(a, b) : order * byName(a, b)));
    this.active = Math.max(0, Math.min(this.active, this.rows.length - 1));
    const plural = this.rows.length === 1 ? "" : "s";
    setText(this.about, `${formatAmount(this.rows.length, Units.Count, true)} row${plural}`);
    this.drawHead();
    this.list.update(this.rows.length);
  }

  private timeColumns(): Column[] {
    return [
      { title: "bytes", value: ({ bytes }) => bytes, text: ({ bytes }) => this.bytes(bytes) },
      ...this.residentColumns(),
      { title: "share", value: ({ bytes }) => bytes, text: ({ bytes }) => formatShare(bytes, this.total) },
      { title: "blocks", value: ({ blocks }) => blocks, text: ({ blocks }) => this.count(blocks) },
      { title: "name", value: null, text: ({ name }) => name },
    ];
  }

  /** Returns columns for the bytes in memory, in swap and without memory, if the dump has these amounts. */
  private residentColumns(): Column[] {
    const { absent } = this.amounts;
    if (!absent) return [];
    const column = (title: string, value: (holder: HolderSums) => number): Column => ({
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
    const bytes = (holder: HolderSums) => holder.bytes - holder.bytesBefore;
    const blocks = (holder: HolderSums) => holder.blocks - holder.blocksBefore;
    const signed = (amount: number, text: string) => (amount > 0 ? `+${text}` : text);
    return [
      { title: "change", value: (holder) => Math.abs(bytes(holder)), text: (holder) => signed(bytes(holder), this.bytes(bytes(holder))) },
      { title: "before", value: (holder) => holder.bytesBefore, text: (holder) => this.bytes(holder.bytesBefore) },
      { title: "after", value: (holder) => holder.bytes, text: (holder) => this.bytes(holder.bytes) },
      { title: "blocks", value: (holder) => Math.abs(blocks(holder)), text: (holder) => signed(blocks(holder), this.count(blocks(holder))) },
      { title: "name", value: null, text: ({ name }) => name },
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

  private render(row: number): HTMLElement {
    const holder = this.rows[row];
    const element = create("div", "row");
    element.setAttribute("role", "row");
    element.dataset.row = String(row);
    if (row === this.active) element.classList.add("active");
    const change = holder.bytes - holder.bytesBefore;
    if (this.amounts.before && change !== 0) element.classList.add(change > 0 ? "grown" : "shrunk");
    for (const { value, text } of this.columns) {
      const cell = create("span", value ? "cell" : "name", text(holder));
      cell.setAttribute("role", "cell");
      element.append(cell);
    }
    setTip(element, holder.name);
    return element;
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + this.list.page,
      PageUp: this.active - this.list.page,
      Home: 0,
      End: this.rows.length - 1,
    };
    if (!(event.key in moves)) return;
    this.moveTo(moves[event.key]);
    event.preventDefault();
  }

  private moveTo(row: number) {
    this.active = Math.max(0, Math.min(row, this.rows.length - 1));
    this.list.reveal(this.active);
    this.list.draw();
  }
}
