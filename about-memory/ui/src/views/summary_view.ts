// The first view of a heap: its size, what holds the most memory, and what the reader can do next.
//
// A table has at least five rows. More rows follow until the rows have 80 % of the heap, as in the text of `run`.

import { formatAmount, formatBytes, shareText, Units } from "../text/amount";
import { create, setLines, setName, setTip, words } from "../widgets/elements";
import { button } from "../widgets/controls";
import type { Heap } from "../data/heap";
import type { Model } from "../model/model";
import { type HolderKey, type HolderSums, holders, KEYS, nameParts, type RowAmounts } from "../data/stacks";
import type { HeapActions } from "./heap_actions";
import type { View } from "./view";

const ROWS = 5;
const MOST_ROWS = 20;
const ENOUGH = 0.8;
/** The title of each table. */
const TITLES = ["Where it was allocated", "What it is", "Which crate"];
/** A part of the heap that is worth a sentence. */
const LARGE = 0.1;
/** Blocks with fewer bytes on average spend much of their memory on the allocator. */
const SMALL_BLOCK = 64;

export class SummaryView implements View {
  readonly id = "summary";
  readonly title = "Summary";
  readonly element = create("div", "summary");

  constructor(
    private readonly heap: Heap,
    private amounts: RowAmounts,
    private readonly model: Model,
    private readonly estimated: boolean,
    private readonly actions: HeapActions,
  ) {
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    setName(this.element, "Summary");
  }

  show(amounts: RowAmounts) {
    this.amounts = amounts;
  }

  update() {
    const { facts, stacks } = this.heap;
    const all = KEYS.map((_, key) => this.sorted(holders(stacks, key as HolderKey, this.amounts)));
    const parts: HTMLElement[] = [this.answer(all)];
    if (facts?.life) parts.push(lines("facts", facts.life));
    const columns = create("div", "columns");
    columns.append(...all.flatMap((rows, key) => (this.isTold(rows) ? [this.table(key as HolderKey, rows)] : [])));
    parts.push(columns);
    if (facts?.advice) parts.push(lines("advice", facts.advice));
    if (facts?.memory && !this.heap.kinds?.memory) parts.push(create("h2", "", "Resident memory of the process"), lines("memory", facts.memory, "pre"));
    this.element.replaceChildren(...parts);
  }

  /** Whether a table says more than one unknown name. */
  private isTold(rows: HolderSums[]) {
    return rows.length > 0 && !(rows.length === 1 && rows[0].name === "?");
  }

  private size({ bytes, bytesBefore }: HolderSums): number {
    return this.amounts.before ? Math.abs(bytes - bytesBefore) : bytes;
  }

  private sorted(rows: HolderSums[]) {
    return rows.filter((row) => this.size(row) !== 0).sort((a, b) => this.size(b) - this.size(a) || (a.name < b.name ? -1 : 1));
  }

  private bytes(amount: number) {
    return (this.estimated ? "~" : "") + formatBytes(amount, this.model.settings.verbose);
  }

  private signed(amount: number) {
    return (amount > 0 ? "+" : "") + this.bytes(amount);
  }

  private count(amount: number) {
    return (this.estimated ? "~" : "") + formatAmount(amount, Units.Count, true);
  }

  private get sums() {
    const sum = (amounts: Float64Array) => amounts.reduce((sum, amount) => sum + amount, 0);
    const { bytes, blocks, before } = this.amounts;
    return { bytes: sum(bytes), blocks: sum(blocks), bytesBefore: before ? sum(before.bytes) : 0 };
  }

  /** Returns the heap's size, the largest holders in one sentence, and the next steps. */
  private answer(all: HolderSums[][]): HTMLElement {
    const answer = create("section", "answer");
    const { bytes, blocks, bytesBefore } = this.sums;
    const [site] = all[0];
    if (!site) {
      answer.append(create("p", "size", this.amounts.before ? "The two heaps are equal." : "No blocks."));
      return answer;
    }
    const size = create("p", "size");
    if (this.amounts.before) {
      const change = bytes - bytesBefore;
      size.append(create("strong", change > 0 ? "grow" : "shrink", this.signed(change)), words(` from ${this.bytes(bytesBefore)} to ${this.bytes(bytes)}`));
    } else {
      size.append(create("strong", "", this.bytes(bytes)), words(` in ${this.count(blocks)} block${blocks === 1 ? "" : "s"}`));
    }
    answer.append(size, this.sentence(site, all[1][0], bytes));
    const steps = create("p", "steps");
    const path = nameParts(site.name).name;
    steps.append(button("Open its stacks", () => this.actions.openRow(0, site.name), `The call stacks through ${path}, with file and line`));
    const [type] = all[1];
    if (type && type.name !== "?") steps.append(button("Open the type", () => this.actions.openRow(1, type.name), `The call stacks that allocated ${type.name}`));
    steps.append(button("Flame graph", () => this.actions.showFlame([]), "All stacks as one picture"));
    answer.append(steps);
    return answer;
  }

  private sentence(site: HolderSums, type: HolderSums | undefined, whole: number): HTMLElement {
    const text = create("p", "what");
    const { name, place } = nameParts(site.name);
    const strong = (name: string) => create("strong", "", name);
    if (this.amounts.before) {
      const change = site.bytes - site.bytesBefore;
      text.append(strong(name), words(`${place ? ` (${place})` : ""} ${change > 0 ? "grew" : "shrank"} most: ${this.signed(change)}, from ${this.bytes(site.bytesBefore)} to ${this.bytes(site.bytes)}.`));
      return text;
    }
    text.append(strong(name), words(`${place ? ` (${place})` : ""} allocated the most: ${this.bytes(site.bytes)}, ${shareText(site.bytes, whole)} of the heap, in ${this.count(site.blocks)} block${site.blocks === 1 ? "" : "s"}.`));
    if (type && type.name !== "?" && type.bytes >= whole * LARGE) {
      text.append(words(" By type, "), strong(type.name), words(` has ${shareText(type.bytes, whole)}.`));
    }
    const average = site.blocks > 0 ? site.bytes / site.blocks : 0;
    if (site.blocks > 1 && average < SMALL_BLOCK) text.append(words(` Its blocks have ${Math.round(average)} B on average: fewer and larger blocks would save the allocator's part.`));
    const unreported = this.heap.kinds?.list.find(({ title }) => title === "Unreported");
    const missing = unreported?.amounts.bytes.reduce((sum, bytes) => sum + bytes, 0) ?? 0;
    if (unreported && missing >= whole * LARGE) text.append(words(` No reporter covers ${shareText(missing, whole)} of the heap.`));
    return text;
  }

  private table(key: HolderKey, rows: HolderSums[]): HTMLElement {
    const section = create("section");
    const whole = rows.reduce((sum, row) => sum + this.size(row), 0);
    let named = 0;
    const needed = rows.findIndex((row) => (named += this.size(row)) >= whole * ENOUGH) + 1;
    const shown = rows.slice(0, Math.min(MOST_ROWS, Math.max(ROWS, needed || rows.length)));
    const list = create("ol");
    const most = this.size(rows[0]);
    list.append(...shown.map((row) => this.row(key, row, most)));
    section.append(create("h2", "", TITLES[key]), list);
    if (rows.length > shown.length) {
      const rest = rows.slice(shown.length).reduce((sum, row) => sum + this.size(row), 0);
      const more = button(`${formatAmount(rows.length - shown.length, Units.Count, true)} more, ${this.bytes(rest)}`, () => this.actions.openRow(key, ""), `All rows by ${KEYS[key]}`);
      more.className = "more";
      section.append(more);
    }
    return section;
  }

  private row(key: HolderKey, row: HolderSums, most: number): HTMLElement {
    const item = create("li");
    const { name, place } = nameParts(row.name);
    const open = button("", () => this.actions.openRow(key, row.name));
    const size = this.size(row);
    const bar = create("span", "bar");
    const fill = create("span", this.amounts.before ? (row.bytes > row.bytesBefore ? "part grow" : "part shrink") : "part");
    fill.style.width = `${((100 * size) / most).toFixed(1)}%`;
    bar.append(fill);
    const amount = this.amounts.before ? this.signed(row.bytes - row.bytesBefore) : this.bytes(row.bytes);
    const share = this.amounts.before ? "" : shareText(row.bytes, this.sums.bytes);
    const text = create("span", "name", name);
    if (place) text.append(" ", create("small", "", shortPlace(place)));
    open.append(create("span", "cell", amount), create("span", "cell share", share), text, bar);
    setTip(open, row.name, `${amount} in ${this.count(row.blocks)} block${row.blocks === 1 ? "" : "s"}; opens the stacks`);
    item.append(open);
    return item;
  }
}

/** Returns the file and the line of a place, and the folder of a file whose name says nothing. */
function shortPlace(place: string): string {
  const parts = place.split("/");
  return parts.slice(/^(mod|lib|main)\.rs/.test(parts[parts.length - 1]) ? -3 : -1).join("/");
}

function lines(className: string, text: string, tag: "p" | "pre" = "p"): HTMLElement {
  const element = create(tag, className);
  if (tag === "pre") element.tabIndex = 0;
  setLines(element, text.trimEnd().split("\n"));
  return element;
}
