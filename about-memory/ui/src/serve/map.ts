// A census as boxes whose area is their bytes. Each box is a button, so that the keyboard reaches it.

import { hierarchy, treemap } from "d3-hierarchy";
import { create } from "../elements";
import type { Api } from "./api";
import { bytes, count } from "./format";

interface Box {
  name: string;
  bytes: number;
  count: number;
  inside: Box[];
}

/** Smaller boxes have no element. */
const LEAST = 6;

export class MapView {
  readonly element = create("div", "map");
  private root: Box | null = null;
  private readonly request = new AbortController();
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor(
    private readonly api: Api,
    query: Record<string, unknown>,
    private readonly onChoose: (name: string) => void,
    private readonly onState: (text: string, isError: boolean) => void,
  ) {
    this.observer.observe(this.element);
    void this.load(query);
  }

  close() {
    this.request.abort();
    this.observer.disconnect();
  }

  private async load(query: Record<string, unknown>) {
    try {
      this.root = await this.api.post<Box>("query", { query }, this.request.signal);
      this.onState(`${bytes(this.root.bytes)} in ${count(this.root.count)} nodes`, false);
      this.draw();
    } catch (error) {
      if (!this.request.signal.aborted) this.onState((error as Error).message, true);
    }
  }

  private draw() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!this.root || !width || !height) return;
    const own = (box: Box) => Math.max(0, box.bytes - box.inside.reduce((sum, child) => sum + child.bytes, 0));
    const tree = hierarchy(this.root, (box) => box.inside).sum(own);
    const laid = treemap<Box>().size([width, height]).paddingTop((node) => (node.depth > 0 ? 16 : 0)).paddingInner(1)(tree);
    const boxes: HTMLElement[] = [];
    for (const node of laid.descendants()) {
      const [x, y, w, h] = [node.x0, node.y0, node.x1 - node.x0, node.y1 - node.y0];
      if (w < LEAST || h < LEAST || node.depth === 0) continue;
      const top = node.ancestors().at(-2)!;
      const box = create("button", `k${(laid.children ?? []).indexOf(top) % 5}`);
      box.type = "button";
      box.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
      const text = `${node.data.name} · ${bytes(node.data.bytes)} · ${count(node.data.count)}`;
      if (w > 30 && h > 13) box.textContent = text;
      box.title = text;
      box.setAttribute("aria-label", text);
      box.addEventListener("click", () => this.onChoose(node.data.name));
      boxes.push(box);
    }
    this.element.replaceChildren(...boxes);
    document.documentElement.dataset.boxes = String(boxes.length);
  }
}
