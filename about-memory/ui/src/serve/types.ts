// The tables of a typed heap, shown beside the views of its snapshot.

import { create, setName, setText, setTip } from "../widgets/elements";
import type { Api } from "./api";
import { choice } from "../widgets/controls";
import { bytes, count, percent } from "../text/format";
import { link, replaceAddress } from "./route";

interface TypeRow {
  bytes: number;
  blocks: number;
  text: string;
  of_type: string | null;
}

interface TypeTable {
  name: string;
  title: string;
  counts: "blocks" | "pointers";
  whole: number;
  rows: TypeRow[];
  left_out: number;
}

interface TypeTables {
  summary: string;
  tables: TypeTable[];
}

/** The tables of a snapshot. `by` is the name of the table to show first. */
export class TypesView {
  readonly element = create("div", "types");
  private isClosed = false;

  constructor(
    private readonly api: Api,
    private readonly snapshot: number,
    private readonly by: string,
    private readonly showStatus: (text: string, isError: boolean) => void,
  ) {
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    setName(this.element, "Types");
    this.load().catch((error: Error) => !this.isClosed && showStatus(error.message, true));
  }

  close() {
    this.isClosed = true;
  }

  private async load() {
    const all = await this.api.get<TypeTables>(`types/${this.snapshot}`);
    if (!this.isClosed) this.show(all, all.tables.find(({ name }) => name === this.by)?.name ?? all.tables[0].name);
  }

  private show(all: TypeTables, name: string) {
    const shown = all.tables.find((table) => table.name === name)!;
    const names = all.tables.map(({ name, title }): [string, string] => [name, title]);
    const menu = choice("Table", names, name, (next) => {
      replaceAddress(link(["memory", this.snapshot, "types"], { by: next }));
      this.show(all, next);
    });
    const table = create("table", "processes");
    const head = create("tr");
    const titles = shown.counts === "pointers" ? ["Pointers", "What"] : ["Bytes", "Share", "Blocks", "What"];
    head.append(...titles.map((title) => create("th", "", title)));
    table.append(head, ...shown.rows.map((row) => this.row(row, shown)));
    const rest = shown.left_out > 0 ? [create("p", "none", `… and ${count(shown.left_out)} more rows`)] : [];
    this.element.replaceChildren(create("p", "summary", all.summary), menu, table, ...rest);
    this.showStatus(`${count(shown.rows.length)} rows`, false);
    document.documentElement.dataset.rows = String(shown.rows.length);
  }

  private row(row: TypeRow, { counts, whole }: TypeTable): HTMLElement {
    const element = create("tr");
    const amount = create("td", "number", bytes(row.bytes));
    setTip(amount, `${count(row.bytes)} B`);
    const what = create("td");
    if (row.of_type === null) setText(what, row.text);
    else {
      const to = create("a", "", row.text);
      to.href = link(["memory", this.snapshot, "census"], { by: "type", filter: row.of_type });
      setTip(to, "The blocks of this type: who holds them, and which stacks allocated them");
      what.append(to);
    }
    const part = create("td", "number", percent(row.bytes, whole));
    element.append(...(counts === "pointers" ? [] : [amount, part]), create("td", "number", count(row.blocks)), what);
    return element;
  }
}
