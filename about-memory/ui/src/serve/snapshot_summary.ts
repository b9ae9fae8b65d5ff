// The first view of a heap snapshot: its size, the nodes that keep the most memory alive as sentences, and the largest
// types and classes.

import { create, setName, setTip, words } from "../widgets/elements";
import { bytes, count, percent } from "../text/format";
import type { Api, Snapshot } from "./api";
import type { Page, ShowStatus } from "./page";
import type { PathStep } from "./paths_graph";
import { link } from "./route";

/** The parts of a row that the summary shows. */
interface FoundRow {
  id: number;
  name: string[];
  numbers: number[];
  node: boolean;
}

interface FoundRows {
  columns: string[];
  rows: FoundRow[];
}

const ROWS = 8;
/** At most this many suspects have a sentence. */
const SUSPECTS = 3;
/** At most this many steps of a path are shown: the ones nearest to the node. */
const STEPS = 4;

export class SnapshotSummary implements Page {
  readonly element = create("div", "summary");
  private readonly request = new AbortController();

  constructor(
    private readonly api: Api,
    private readonly snapshot: Snapshot,
    private readonly showStatus: ShowStatus,
  ) {
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    setName(this.element, "Summary");
    const answer = create("section", "answer");
    const size = create("p", "size");
    size.append(create("strong", "", bytes(snapshot.bytes)), words(` in ${count(snapshot.nodes)} nodes`));
    const suspects = create("div", "suspects");
    suspects.append(create("p", "what", "Looking for the nodes that keep the most memory alive …"));
    answer.append(size, suspects);
    const columns = create("div", "columns");
    this.element.append(answer, columns);
    this.load(suspects, columns).catch((error: Error) => !this.request.signal.aborted && showStatus(error.message, true));
  }

  close() {
    this.request.abort();
  }

  private rows(query: Record<string, unknown>, sort: string | null): Promise<FoundRows> {
    const rows = { start: 0, count: ROWS, depth: 0, ...(sort ? { sort: { column: sort, ascending: false } } : {}) };
    return this.api.post<FoundRows>("query", { query: { snapshot: this.snapshot.id, ...query }, rows }, this.request.signal);
  }

  private async load(suspects: HTMLElement, columns: HTMLElement) {
    const { id } = this.snapshot;
    // The types need no dominators, so they arrive first.
    const types = await this.rows({ view: "census", by: "type", invert: true, filter: "" }, "bytes");
    const toType = (row: FoundRow) => link(["memory", id, "census"], { by: "type", filter: row.name[row.name.length - 1] });
    columns.append(this.table("What it is", types, ["bytes", "total-bytes"], toType));
    this.showStatus("Looking for suspects…", false);
    const found = await this.rows({ view: "suspects" }, null);
    const largest = found.rows.slice(0, SUSPECTS);
    const paths = await Promise.all(largest.map((row) => (row.node ? this.path(row.id) : [])));
    suspects.replaceChildren(...largest.map((row, at) => this.suspect(row, found.columns, paths[at])));
    if (largest.length === 0) suspects.append(create("p", "what", "No node alone keeps a large part of the heap alive: look at the types."));
    const classes = await this.rows({ view: "classes", filter: "" }, "retained");
    const toClass = (row: FoundRow) => link(["memory", id, "classes"], { filter: row.name[row.name.length - 1] });
    columns.append(this.table("What its classes keep alive", classes, ["retained"], toClass));
    this.showStatus("", false);
    document.documentElement.dataset.rows = String(types.rows.length);
  }

  /** Returns the names of the last steps to a node, and the fields between them. */
  private async path(node: number): Promise<PathStep[]> {
    const query = { view: "paths", snapshot: this.snapshot.id, node, max: 1 };
    const { paths } = await this.api.post<{ paths: PathStep[][] }>("query", { query }, this.request.signal);
    return paths[0] ?? [];
  }

  private suspect(row: FoundRow, columns: string[], path: PathStep[]): HTMLElement {
    const retained = row.numbers[columns.indexOf("retained")] ?? 0;
    // A group is named `12336 of SavedFrame`.
    const name = row.name[row.name.length - 1].replace(/^(\d+) of /, (_, nodes: string) => `${count(Number(nodes))} `);
    const text = create("p", "what");
    const to = create("a", "", name);
    to.href = row.node ? link(["memory", this.snapshot.id, "search"], { q: `@0x${row.id.toString(16)}` }) : link(["memory", this.snapshot.id, "suspects"]);
    const isMany = !row.node;
    text.append(to, words(` ${isMany ? "keep" : "keeps"} ${percent(retained, this.snapshot.bytes)} of the heap alive: ${bytes(retained)}.`));
    const held = path.slice(0, -1).slice(-STEPS);
    if (held.length > 0) text.append(words(` Held by ${path.length - 1 > STEPS ? "… → " : ""}${held.map(({ name, edge }) => `${name || "the roots"}${edge ? `.${edge}` : ""}`).join(" → ")}.`));
    return text;
  }

  private table(title: string, { columns, rows }: FoundRows, amounts: string[], to: (row: FoundRow) => string): HTMLElement {
    const section = create("section");
    const column = columns.findIndex((name) => amounts.includes(name));
    const shown = rows.map((row) => ({ row, amount: row.numbers[column] ?? 0 })).filter(({ amount }) => amount > 0);
    const list = create("ol");
    for (const { row, amount } of shown) {
      const item = create("li");
      const go = create("a", "open");
      go.href = to(row);
      const bar = create("span", "bar");
      const part = create("span", "part");
      part.style.width = `${((100 * amount) / shown[0].amount).toFixed(1)}%`;
      bar.append(part);
      const name = row.name.join(" › ");
      setTip(go, name);
      go.append(create("span", "cell", bytes(amount)), create("span", "cell share", percent(amount, this.snapshot.bytes)), create("span", "name", name), bar);
      item.append(go);
      list.append(item);
    }
    section.append(create("h2", "", title), list);
    return section;
  }
}
