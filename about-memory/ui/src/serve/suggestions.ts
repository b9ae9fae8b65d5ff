// Suggested reporters for the unreported blocks of a dump, beside its stacks: the derive and the reporter for each type
// and function. Suggestions for the chosen row are first.

import { create, setLines, setName, setText } from "../widgets/elements";
import type { HeapViews } from "../views/heap_views";
import type { Api } from "./api";
import { bytes, count } from "../text/format";

interface Suggestion {
  bytes: number;
  blocks: number;
  type: string | null;
  function: string;
  place: string;
  crate: string;
  advice: string;
}

/** At most this many suggestions are shown. */
const MOST = 50;

export class SuggestionsPane {
  readonly element = create("section", "paths suggestions");
  private readonly body = create("div", "", "Reading the dump …");
  private all: Suggestion[] = [];

  constructor(
    private readonly heap: HeapViews,
    api: Api,
    id: number,
    showStatus: (text: string, isError: boolean) => void,
  ) {
    this.element.tabIndex = 0;
    setName(this.element, "Suggested reporters");
    this.element.append(create("h2", "", "Suggested reporters"), this.body);
    api.get<{ suggestions: Suggestion[] }>(`stacks/${id}/suggestions`).then(
      ({ suggestions }) => {
        this.all = suggestions;
        this.update();
      },
      (error: Error) => {
        setText(this.body, error.message);
        showStatus(error.message, true);
      },
    );
  }

  /** Shows the suggestions for the table's current row. */
  update() {
    const row = this.heap.table.row;
    const own = row ? this.all.filter((one) => isAbout(one, row.by, row.name)) : [];
    const shown = own.length > 0 ? own : this.all;
    this.element.dataset.suggestions = String(shown.length);
    if (this.all.length === 0) return;
    const about = own.length > 0 ? `For the chosen row, ${own.length} of ${this.all.length}:` : `For all blocks that no reporter reports, ${this.all.length}:`;
    this.body.replaceChildren(create("p", "none", about), ...shown.slice(0, MOST).map((one) => this.item(one)));
  }

  private item({ bytes: size, blocks, type, function: of, place, advice }: Suggestion): HTMLElement {
    const item = create("article");
    const plural = blocks === 1 ? "" : "s";
    item.append(create("strong", "", `${bytes(size)} in ${count(blocks)} block${plural}${type ? ` of ${type}` : ""}`));
    const text = create("pre");
    text.tabIndex = 0;
    setLines(text, advice.split("\n"));
    item.append(create("p", "", `allocated by ${of} at ${place || "an unknown place"}`), text);
    return item;
  }
}

/** Whether a suggestion is about a row of the table by site, type or crate. */
function isAbout(one: Suggestion, by: string, name: string): boolean {
  if (by === "type") return one.type === name;
  if (by === "crate") return one.crate === name;
  return name === one.function || name.startsWith(`${one.function} `);
}
