// All stacks as a tree of calls: for each function the memory that it and its callees allocated, and the memory that it
// allocated itself. The tree can be inverted, start with one function, and merge direct recursion.

import { formatAmount, formatBytes, shareText, Units } from "../text/amount";
import { create, setName, setText, setTip } from "../widgets/elements";
import { button, check } from "../widgets/controls";
import { makeFilter } from "../model/filter";
import { CallNode } from "../data/call_tree";
import { type Frame, inverted } from "../data/flame";
import type { Model } from "../model/model";
import type { View } from "./view";
import { VirtualList } from "../widgets/virtual_list";

/** A visible row, and its depth below the first level. */
interface CallRow {
  node: CallNode;
  level: number;
}

const HEADS = ["total", "share", "self", "blocks"];
/** A chain of calls opens at once if each function has at least this share of the memory of its caller. */
const CHAIN = 0.95;

export class CallTreeView implements View {
  readonly id = "calls";
  readonly title = "Call tree";
  readonly isOfDump = true;
  readonly element = create("div", "table calls");
  private readonly list = new VirtualList((row) => this.render(row));
  private readonly focusedOn = create("span", "focus");
  private readonly head = create("div", "head");
  private rows: CallRow[] = [];
  private open = new Set<CallNode>();
  private top!: CallNode;
  private active = 0;
  private isInverted = false;
  private merges = false;
  /** The function that the tree starts with; `null` for all stacks. */
  private start: string | null = null;
  private hasChanged = true;

  constructor(
    private root: Frame,
    private readonly model: Model,
    private readonly showCallers: (name: string) => void,
  ) {
    const { element } = this.list;
    element.setAttribute("role", "rowgroup");
    element.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>(".row");
      if (!row) return;
      this.active = Number(row.dataset.row);
      if (String(getSelection()) === "") this.toggle(!this.open.has(this.rows[this.active].node), event.altKey);
      this.moveTo(this.active);
    });
    element.addEventListener("keydown", (event) => this.pressed(event));
    this.head.setAttribute("role", "row");
    for (const title of [...HEADS, "function"]) {
      const cell = create("span", title === "function" ? "name" : "cell", title);
      cell.setAttribute("role", "columnheader");
      this.head.append(cell);
    }
    const grid = create("div", "grid");
    grid.setAttribute("role", "treegrid");
    setName(grid, "Call tree");
    grid.append(this.head, element);
    const change = (apply: () => void) => {
      apply();
      this.hasChanged = true;
      this.update();
    };
    const bar = create("div", "bar");
    bar.append(
      check("inverted", false, (on) => change(() => (this.isInverted = on))),
      check("merge recursion", false, (on) => change(() => (this.merges = on))),
      button("Start with this function", () => change(() => (this.start = this.rows[this.active]?.node.name ?? null)), "Shows only the calls below the chosen function"),
      button("Callers", () => this.rows[this.active] && this.showCallers(this.rows[this.active].node.name), "The callers and callees of the chosen function"),
      this.focusedOn,
    );
    this.element.append(bar, grid);
  }

  get focused(): HTMLElement {
    return this.list.element;
  }

  show(root: Frame) {
    this.root = root;
    this.hasChanged = true;
  }

  update() {
    if (this.hasChanged) this.build();
    const { filter } = makeFilter(this.model.settings.filter, this.model.settings.regex);
    const rows: CallRow[] = [];
    // With a filter, only functions with a match, and functions that lead to a match, have rows.
    const known = new Map<CallNode, boolean>();
    const leads = (node: CallNode): boolean => {
      let has = known.get(node);
      if (has === undefined) known.set(node, (has = filter!.accepts(node.name) || node.called.some(leads)));
      return has;
    };
    const left: CallRow[] = [...this.top.called].reverse().map((node) => ({ node, level: 0 }));
    for (let next = left.pop(); next; next = left.pop()) {
      if (filter && !leads(next.node)) continue;
      rows.push(next);
      const isOpen = this.open.has(next.node) || (filter && !filter.accepts(next.node.name));
      if (isOpen) for (const node of [...next.node.called].reverse()) left.push({ node, level: next.level + 1 });
    }
    this.rows = rows;
    this.active = Math.max(0, Math.min(this.active, rows.length - 1));
    this.list.update(rows.length);
  }

  private build() {
    this.hasChanged = false;
    const all = CallNode.from(this.isInverted ? inverted(this.root) : this.root, this.merges);
    this.top = this.start === null ? all : CallNode.startingWith(all, this.start);
    this.open = new Set();
    this.active = 0;
    // The callers that lead to the first branch tell nothing, so they are open.
    for (let node = this.top; node.called.length > 0 && node.called[0].total >= node.total * CHAIN; ) this.open.add((node = node.called[0]));
    setText(this.focusedOn, "");
    if (this.start === null) return;
    const whole = button(`only ${this.start} ✕`, () => {
      this.start = null;
      this.hasChanged = true;
      this.update();
      this.list.element.focus();
    }, "Shows all functions again");
    this.focusedOn.replaceChildren(whole);
  }

  private render(at: number): HTMLElement {
    const { node, level } = this.rows[at];
    const element = create("div", at === this.active ? "row active" : "row");
    element.setAttribute("role", "row");
    element.setAttribute("aria-level", String(level + 1));
    element.dataset.row = String(at);
    if (node.called.length > 0) {
      element.classList.add("toggle");
      element.setAttribute("aria-expanded", String(this.open.has(node)));
    }
    const { verbose } = this.model.settings;
    const about = this.root.estimated ? "~" : "";
    const texts = [about + formatBytes(node.total, verbose), shareText(node.total, Number(this.root.bytes)), about + formatBytes(node.own, verbose), about + formatAmount(node.blocks, Units.Count, true)];
    for (const text of texts) {
      const cell = create("span", "cell", text);
      cell.setAttribute("role", "gridcell");
      element.append(cell);
    }
    const name = create("span", "name", node.name);
    name.style.paddingLeft = `${Math.min(level, 60) * 1.5}ch`;
    name.setAttribute("role", "gridcell");
    if (node.place) name.append(" ", create("small", "", node.place));
    setTip(name, node.name, node.place);
    element.append(name);
    return element;
  }

  /** Opens or closes the active row, or with `all` also everything below it. */
  private toggle(open: boolean, all = false) {
    const row = this.rows[this.active];
    if (!row) return;
    const left = [row.node];
    for (let node = left.pop(); node; node = left.pop()) {
      if (open) this.open.add(node);
      else this.open.delete(node);
      if (all) left.push(...node.called);
    }
    this.update();
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = this.rows[this.active];
    if (!row) return;
    const moves: Record<string, number> = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + this.list.page,
      PageUp: this.active - this.list.page,
      Home: 0,
      End: this.rows.length - 1,
    };
    const isOpen = this.open.has(row.node);
    if (event.key === "Enter" || event.key === " ") this.toggle(!isOpen);
    else if (event.key === "*") this.toggle(true, true);
    else if (event.key === "ArrowRight") isOpen || row.node.called.length === 0 ? this.moveTo(this.active + 1) : this.toggle(true);
    else if (event.key === "ArrowLeft") isOpen ? this.toggle(false) : this.moveTo(this.parent());
    else if (event.key in moves) this.moveTo(moves[event.key]);
    else return;
    event.preventDefault();
  }

  private parent(): number {
    for (let above = this.active - 1; above >= 0; above--) if (this.rows[above].level < this.rows[this.active].level) return above;
    return this.active;
  }

  private moveTo(row: number) {
    this.active = Math.max(0, Math.min(row, this.rows.length - 1));
    this.list.reveal(this.active);
    this.list.draw();
  }
}
