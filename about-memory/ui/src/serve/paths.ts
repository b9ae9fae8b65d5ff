// Why a node is alive: paths from the root to the node that has the focus, and to no other.

import { create } from "../elements";
import type { Api } from "./api";

interface Step {
  node: number;
  name: string;
  edge: string | null;
}

/** A focus that moves on within this many milliseconds asks for nothing. */
const RESTING = 80;
const MOST = 10;

export class PathsPane {
  readonly element = create("section", "paths");
  private readonly body = create("div", "", "Select a row to see its retaining paths.");
  private request = new AbortController();
  private timer = 0;

  constructor(
    private readonly api: Api,
    private readonly snapshot: number,
  ) {
    this.element.tabIndex = 0;
    this.element.setAttribute("aria-label", "Retaining paths");
    this.element.append(create("h2", "", "Retaining paths (from garbage collector roots)"), this.body);
  }

  /** Shows the paths to a node; the request for the node before ends. */
  show(node: number) {
    this.close();
    this.request = new AbortController();
    this.timer = window.setTimeout(() => void this.load(node, this.request.signal), RESTING);
  }

  close() {
    clearTimeout(this.timer);
    this.request.abort();
  }

  private async load(node: number, signal: AbortSignal) {
    try {
      const query = { view: "paths", snapshot: this.snapshot, node, max: MOST };
      const { paths } = await this.api.post<{ paths: Step[][] }>("query", { query }, signal);
      if (signal.aborted) return;
      this.body.replaceChildren(...paths.map((path) => this.path(path)));
      if (paths.length === 0) this.body.textContent = "No path leads from the roots to this node.";
      this.element.dataset.node = String(node);
    } catch (error) {
      if (!signal.aborted) this.body.textContent = (error as Error).message;
    }
  }

  private path(steps: Step[]): HTMLElement {
    const list = create("ol", "path");
    steps.forEach((step, at) => {
      const item = create("li");
      item.append(" ".repeat(2 * at), create("span", "name", step.name || "(root)"));
      item.append(create("span", "address", ` @ 0x${step.node.toString(16)}`));
      if (at + 1 < steps.length) item.append(create("span", "edge", ` .${step.edge ?? "(no name)"} →`));
      list.append(item);
    });
    return list;
  }
}
