// The text of the reports as trees, which the reader opens and closes. Tooltips explain the lines.

import { formatAmount } from "../text/amount";
import { isLeaf } from "../data/reports";
import { create, setName, setText, setWords, tooltipText } from "../widgets/elements";
import { showText } from "../text/escape";
import type { Model } from "../model/model";
import { RowKind, type LineParts } from "../model/rows";
import type { View } from "./view";
import { VirtualList } from "../widgets/virtual_list";

/** Texts with more characters are cut on the screen. Copied text is complete. */
const LONGEST = 4000;

export class TreeView implements View {
  readonly id = "tree";
  readonly title = "Tree";
  readonly element: HTMLElement;
  private readonly list = new VirtualList((row, old) => this.render(row, old));
  private active = 0;

  constructor(private readonly model: Model) {
    this.element = this.list.element;
    this.element.setAttribute("role", "tree");
    setName(this.element, "Memory reports");
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.pressed(event));
  }

  update() {
    this.active = this.model.focused(Math.min(this.active, this.model.rows.length - 1));
    this.keep();
    this.list.update(this.model.rows.length);
  }

  /** The path of the row that keys act on. */
  get path(): string {
    return this.active >= 0 ? this.model.rows.path(this.active) : "";
  }

  /** Moves to a row. */
  goTo(row: number) {
    this.active = row;
    this.keep();
    this.list.goTo(row);
  }

  /** Notes the entry of the active row. The entry keeps the focus when rows before it appear or disappear. */
  private keep() {
    const { rows } = this.model;
    const kind = this.active < 0 ? RowKind.Text : rows.kind(this.active);
    this.model.focus = kind === RowKind.Text ? null : { isTiny: kind === RowKind.Tiny, node: rows.node(this.active) };
  }

  private clicked(event: MouseEvent) {
    // A reader who selects text does not want to close the row.
    if (!document.getSelection()?.isCollapsed) return;
    const element = (event.target as Element).closest<HTMLElement>(".row");
    if (!element) return;
    this.active = Number(element.dataset.row);
    this.keep();
    this.model.toggle(this.active);
    this.update();
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { rows } = this.model;
    const moves: Record<string, () => number> = {
      ArrowDown: () => this.active + 1,
      ArrowUp: () => this.active - 1,
      PageDown: () => this.active + this.list.page,
      PageUp: () => this.active - this.list.page,
      Home: () => 0,
      End: () => rows.length - 1,
    };
    const opens = event.key === "ArrowRight";
    const closes = event.key === "ArrowLeft";
    const changes = (opens || closes) && rows.toggles(this.active) && rows.isOpen(this.active) === closes;
    if (moves[event.key]) {
      this.moveTo(moves[event.key]());
    } else if (event.key === "Enter" || event.key === " " || changes) {
      this.model.toggle(this.active);
      this.update();
    } else if (closes && rows.parent(this.active) >= 0) {
      this.moveTo(rows.parent(this.active));
    } else if (opens && rows.isOpen(this.active)) {
      this.moveTo(this.active + 1);
    } else {
      return;
    }
    event.preventDefault();
  }

  private moveTo(row: number) {
    this.active = Math.min(Math.max(row, 0), this.model.rows.length - 1);
    this.keep();
    this.list.reveal(this.active);
    this.list.draw();
  }

  /** Returns the element of a row: the changed element `old`, or a new element. */
  private render(row: number, old?: HTMLElement): HTMLElement {
    const { rows } = this.model;
    const parts = rows.parts(row);
    const kind = rows.kind(row);
    const isText = kind === RowKind.Text;
    const isInTree = !isText && kind !== RowKind.Line;
    const toggles = isInTree && rows.toggles(row);
    const isActive = row === this.active;
    if (isInTree) parts.branch = rows.branch(row, parts.value);
    const element = old ?? create("div");
    const id = `row-${row}`;
    const classes = ["row", isActive && "active", parts.style, toggles && "toggle", parts.invalid && "invalid"];
    set(element, "class", classes.filter(Boolean).join(" "));
    set(element, "data-row", String(row));
    set(element, "id", id);
    set(element, "role", isText ? null : "treeitem");
    set(element, "aria-level", isInTree ? String(rows.depth(row) + 1) : null);
    set(element, "aria-expanded", toggles ? String(rows.isOpen(row)) : null);
    set(element, "title", isText ? null : tooltipText(...this.describe(row, parts).split("\n")));
    if (isActive) set(this.element, "aria-activedescendant", id);
    if (isText) {
      if (element.firstElementChild || element.textContent !== parts.name) setText(element, cut(parts.name));
      return element;
    }
    const spans: [string, string][] = [
      ["branch", parts.branch],
      ["value", parts.value],
      ["percent", parts.percent],
      ["separator", parts.separator],
      ["name", parts.name],
      ["note", parts.notes],
    ];
    fill(element, spans.filter(([, text]) => text));
    return element;
  }

  /** Returns the tooltip: the exact amount, and the meaning of the line. */
  private describe(row: number, parts: LineParts): string {
    const { data, rows } = this.model;
    const node = rows.node(row);
    const exact = formatAmount(rows.amount(row), rows.units(row), true);
    const notes: string[] = [];
    if (rows.kind(row) === RowKind.Tiny) {
      notes.push("Entries that are each below 1% of the tree's root.");
    } else if (!isLeaf(data, node)) {
      notes.push("The sum of the entries below.");
    } else if (node >= data.descriptionOf.length) {
      notes.push("Memory in heap-allocated which no reporter claims.");
    } else {
      notes.push(showText(data.descriptions.get(data.descriptionOf[node])));
    }
    if (parts.invalid) notes.push("[?!]: the value is negative or exceeds the root of its tree.");
    if (/ \[\d+\]/.test(parts.notes)) notes.push("[N]: the sum of N reports of this path.");
    if (parts.notes.endsWith("[+]")) notes.push("[+]: only in the second report.");
    if (parts.notes.endsWith("[-]")) notes.push("[-]: only in the first report.");
    if (parts.notes.endsWith("[!]")) notes.push("[!]: a leaf in one of the reports, a tree in the other.");
    return cut(`${exact}\n${notes.filter(Boolean).join("\n")}`);
  }
}

/** Sets an attribute, or removes it. Does nothing if the value is the same. */
function set(element: HTMLElement, name: string, value: string | null) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Gives an element these spans. Existing spans only get their texts. */
function fill(element: HTMLElement, spans: [string, string][]) {
  const { childNodes } = element;
  const fits = childNodes.length === spans.length && spans.every(([name], at) => (childNodes[at] as Element).className === name);
  if (!fits) return element.replaceChildren(...spans.map(([name, text]) => create("span", name, cut(text))));
  spans.forEach(([, text], at) => {
    const shown = childNodes[at].firstChild as Text;
    setWords(shown, cut(text));
  });
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
