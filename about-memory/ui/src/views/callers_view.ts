// A function with its callers and callees. The reader chooses it from the list of all functions, or moves from function
// to function.

import { formatBytes, shareText } from "../text/amount";
import { type CallEdge, callEdges, functionCalls, type FunctionCalls } from "../data/callers";
import { create, setName, setTip } from "../widgets/elements";
import { makeFilter } from "../model/filter";
import type { Frame } from "../data/flame";
import type { Model } from "../model/model";
import type { View } from "./view";
import { VirtualList } from "../widgets/virtual_list";

/** At most this many callers, and at most this many callees, have buttons. */
const MOST = 200;

export class CallersView implements View {
  readonly id = "callers";
  readonly title = "Callers";
  readonly isOfDump = true;
  readonly element = create("div", "callers");
  private readonly list = new VirtualList((row) => this.render(row));
  private readonly around = create("div", "around");
  private all: FunctionCalls[] | null = null;
  private rows: FunctionCalls[] = [];
  private total = 0;
  private active = 0;

  constructor(
    private root: Frame,
    private readonly model: Model,
  ) {
    const { element } = this.list;
    element.setAttribute("role", "listbox");
    setName(element, "Functions");
    element.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>(".row");
      if (row) this.moveTo(Number(row.dataset.row));
    });
    element.addEventListener("keydown", (event) => this.pressed(event));
    this.around.setAttribute("aria-live", "polite");
    this.element.append(element, this.around);
  }

  get focused(): HTMLElement {
    return this.list.element;
  }

  show(root: Frame) {
    this.root = root;
    this.all = null;
  }

  update() {
    const chosen = this.rows[this.active]?.name;
    this.all ??= functionCalls(this.root);
    const { filter } = makeFilter(this.model.settings.filter, this.model.settings.regex);
    this.rows = filter ? this.all.filter(({ name }) => filter.accepts(name)) : this.all;
    this.total = Number(this.root.bytes);
    this.active = Math.max(0, this.rows.findIndex(({ name }) => name === chosen));
    this.list.update(this.rows.length);
    this.draw();
  }

  private render(row: number): HTMLElement {
    const { name, bytes, own } = this.rows[row];
    const element = create("div", row === this.active ? "row active" : "row");
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", String(row === this.active));
    element.id = `callers-${row}`;
    element.dataset.row = String(row);
    element.append(create("span", "cell", this.amount(bytes)), create("span", "cell", this.amount(own)), create("span", "name", name));
    setTip(element, name);
    return element;
  }

  private amount(bytes: number): string {
    return formatBytes(bytes, this.model.settings.verbose);
  }

  /** Draws the neighbours of the active function. */
  private draw() {
    const { element } = this.list;
    const of = this.rows[this.active];
    if (!of) {
      element.removeAttribute("aria-activedescendant");
      this.around.replaceChildren(create("p", "empty", "No function has this name."));
      return;
    }
    element.setAttribute("aria-activedescendant", `callers-${this.active}`);
    const about = `${this.amount(of.bytes)} (${shareText(of.bytes, this.total)}), ${this.amount(of.own)} of its own`;
    this.around.replaceChildren(
      create("h2", "", of.name),
      create("p", "", about),
      this.part("Callers", callEdges(of.callers), of.bytes),
      this.part("Callees", callEdges(of.callees), of.bytes),
    );
  }

  private part(title: string, list: CallEdge[], whole: number): HTMLElement {
    const part = create("section");
    part.append(create("h3", "", title));
    if (list.length === 0) part.append(create("p", "none", "None."));
    for (const { name, bytes } of list.slice(0, MOST)) {
      const button = create("button", "");
      button.type = "button";
      button.append(
        create("span", "cell", this.amount(bytes)),
        create("span", "cell", shareText(bytes, whole)),
        create("span", "name", name),
      );
      button.addEventListener("click", () => this.goTo(name));
      part.append(button);
    }
    if (list.length > MOST) part.append(create("p", "none", `${list.length - MOST} more`));
    return part;
  }

  /** Shows a neighbour. If the filter hides the neighbour, the list shows all functions again. */
  goTo(name: string) {
    if (!this.rows.some((row) => row.name === name)) {
      this.rows = this.all!;
      this.list.update(this.rows.length);
    }
    this.moveTo(this.rows.findIndex((row) => row.name === name));
    this.list.element.focus();
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
    this.draw();
  }
}
