// The text as trees to open and close; tooltips explain the lines.

import { formatAmount } from "../amount";
import { isLeaf } from "../data";
import { create } from "../elements";
import { showText } from "../escape";
import type { Model } from "../model";
import { Kind, type Parts } from "../rows";
import type { View } from "../view";
import { VirtualList } from "../virtual_list";

/** Longer texts are cut on the screen; copied text is complete. */
const LONGEST = 4000;

export class TreeView implements View {
  readonly id = "tree";
  readonly title = "Tree";
  readonly element: HTMLElement;
  private readonly list = new VirtualList((row) => this.render(row));
  private active = 0;

  constructor(private readonly model: Model) {
    this.element = this.list.element;
    this.element.setAttribute("role", "tree");
    this.element.setAttribute("aria-label", "Memory reports");
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.pressed(event));
  }

  update() {
    this.active = Math.min(this.active, this.model.rows.length - 1);
    this.list.update(this.model.rows.length);
  }

  /** The path of the row that keys act on. */
  get path(): string {
    return this.active >= 0 ? this.model.rows.path(this.active) : "";
  }

  /** Moves to a row. */
  goTo(row: number) {
    this.active = row;
    this.list.goTo(row);
  }

  private clicked(event: MouseEvent) {
    // A reader who selects text does not mean to close the row.
    if (!document.getSelection()?.isCollapsed) return;
    const element = (event.target as Element).closest<HTMLElement>(".row");
    if (!element) return;
    this.active = Number(element.dataset.row);
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
    this.list.reveal(this.active);
    this.list.draw();
  }

  private render(row: number): HTMLElement {
    const { rows } = this.model;
    const parts = rows.parts(row);
    const kind = rows.kind(row);
    const element = create("div", "row");
    element.dataset.row = String(row);
    element.id = `row-${row}`;
    if (row === this.active) {
      element.classList.add("active");
      this.element.setAttribute("aria-activedescendant", element.id);
    }
    if (kind === Kind.Text) {
      if (parts.style) element.classList.add(parts.style);
      element.textContent = cut(parts.name);
      return element;
    }
    element.setAttribute("role", "treeitem");
    if (kind !== Kind.Line) {
      parts.branch = rows.branch(row, parts.value);
      element.setAttribute("aria-level", String(rows.depth(row) + 1));
      if (rows.toggles(row)) {
        element.classList.add("toggle");
        element.setAttribute("aria-expanded", String(rows.isOpen(row)));
      }
    }
    if (parts.invalid) element.classList.add("invalid");
    element.title = this.describe(row, parts);
    const spans: [string, string][] = [
      ["branch", parts.branch],
      ["value", parts.value],
      ["percent", parts.percent],
      ["separator", parts.separator],
      ["name", parts.name],
      ["note", parts.notes],
    ];
    for (const [name, text] of spans) if (text) element.append(create("span", name, cut(text)));
    return element;
  }

  /** The tooltip: the exact amount, and what the line means. */
  private describe(row: number, parts: Parts): string {
    const { data, rows } = this.model;
    const node = rows.node(row);
    const exact = formatAmount(rows.amount(row), rows.units(row), true);
    const notes: string[] = [];
    if (rows.kind(row) === Kind.Tiny) {
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

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
