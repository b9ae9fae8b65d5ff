// The reason why a node is alive: paths from the root to the focused node, as a list or as a graph.

import { create, setName, setText, words } from "../widgets/elements";
import type { Api } from "./api";
import { check } from "../widgets/controls";
import { drawPathGraph, type PathStep } from "./paths_graph";
import { link } from "./route";

/** Paths are requested after the focus has rested for this many milliseconds. */
const RESTING = 80;
const MOST = 10;
/** Keys in the session's storage, for the reader's choices for all snapshots: the paths' height, and list or graph. */
const SIZE = "paths-size";
const GRAPH = "paths-graph";
const [LEAST, GREATEST, USUAL] = [10, 90, 35];

const CHOOSE = "Select an item to view its retaining paths.";

export class PathsPane {
  readonly element = create("section", "paths");
  /** The bar between rows and paths. Arrow keys and the pointer move it. */
  readonly splitter = create("div", "splitter");
  private readonly body = create("div", "", CHOOSE);
  private request = new AbortController();
  private timer = 0;
  private found: PathStep[][] = [];
  private isGraph = sessionStorage.getItem(GRAPH) === "1";

  constructor(
    private readonly api: Api,
    private readonly snapshot: number,
  ) {
    this.element.tabIndex = 0;
    setName(this.element, "Retaining paths");
    const head = create("h2", "", "Retaining paths (from garbage collector roots)");
    const graph = check("graph", this.isGraph, (isGraph) => {
      this.isGraph = isGraph;
      sessionStorage.setItem(GRAPH, isGraph ? "1" : "");
      this.draw();
    });
    head.append(" ", graph);
    this.element.append(head, this.body);
    const { splitter } = this;
    splitter.tabIndex = 0;
    splitter.setAttribute("role", "separator");
    splitter.setAttribute("aria-orientation", "horizontal");
    setName(splitter, "Height of the retaining paths");
    splitter.setAttribute("aria-valuemin", String(LEAST));
    splitter.setAttribute("aria-valuemax", String(GREATEST));
    this.resize(Number(sessionStorage.getItem(SIZE)) || USUAL);
    splitter.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 5, ArrowDown: -5 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.resize(this.size + step);
    });
    splitter.addEventListener("pointerdown", (event) => splitter.setPointerCapture(event.pointerId));
    splitter.addEventListener("pointermove", (event) => {
      const whole = splitter.parentElement?.getBoundingClientRect();
      if (whole && splitter.hasPointerCapture(event.pointerId)) this.resize((100 * (whole.bottom - event.clientY)) / whole.height);
    });
  }

  private get size() {
    return Number(this.splitter.getAttribute("aria-valuenow"));
  }

  private resize(size: number) {
    const rounded = Math.round(Math.max(LEAST, Math.min(GREATEST, size)));
    this.splitter.setAttribute("aria-valuenow", String(rounded));
    this.element.style.flexBasis = `${rounded}%`;
    sessionStorage.setItem(SIZE, String(rounded));
  }

  /** Shows the paths to a node. Cancels the request for the previous node. */
  show(node: number) {
    this.close();
    this.request = new AbortController();
    this.timer = window.setTimeout(() => void this.load(node, this.request.signal), RESTING);
  }

  /** Removes the paths, because a group has no paths. */
  clear() {
    this.close();
    this.found = [];
    setText(this.body, CHOOSE);
  }

  close() {
    clearTimeout(this.timer);
    this.request.abort();
  }

  private async load(node: number, signal: AbortSignal) {
    try {
      const query = { view: "paths", snapshot: this.snapshot, node, max: MOST };
      const { paths } = await this.api.post<{ paths: PathStep[][] }>("query", { query }, signal);
      if (signal.aborted) return;
      this.found = paths;
      this.draw();
      this.element.dataset.node = String(node);
    } catch (error) {
      if (!signal.aborted) setText(this.body, (error as Error).message);
    }
  }

  private draw() {
    if (this.found.length === 0) setText(this.body, "No path leads from the roots to this node.");
    else if (this.isGraph) this.body.replaceChildren(drawPathGraph(this.found, (node) => this.to(node)));
    else this.body.replaceChildren(...this.found.map((path) => this.path(path)));
  }

  /** Returns the address of a node. */
  private to(node: number) {
    return link(["memory", this.snapshot, "search"], { q: `@0x${node.toString(16)}` });
  }

  private path(steps: PathStep[]): HTMLElement {
    const list = create("ol", "path");
    steps.forEach((step, at) => {
      const item = create("li");
      const name = create("a", "name", step.name || "(root)");
      name.href = this.to(step.node);
      item.append(words(" ".repeat(2 * at)), name);
      item.append(create("span", "address", ` @ 0x${step.node.toString(16)}`));
      if (at + 1 < steps.length) item.append(create("span", "edge", ` .${step.edge ?? "(no name)"} →`));
      list.append(item);
    });
    return list;
  }
}
