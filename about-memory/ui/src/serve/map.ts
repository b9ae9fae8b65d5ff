// A census as boxes whose area is their bytes.
//
// Pointer and keyboard have the same actions. The wheel, + and - zoom. A drag, or Shift with an arrow key, moves the
// map. Arrow keys move between boxes. Enter or a click opens the group. A text beside the map shows the number of boxes
// that are too small to draw.

import { hierarchy, type HierarchyRectangularNode, treemap } from "d3-hierarchy";
import { create, setName, setText, setTip } from "../widgets/elements";
import { type Direction, nearest } from "../widgets/nearest";
import type { Api } from "./api";
import { button, retry } from "../widgets/controls";
import { bytes, count } from "../text/format";

interface CensusBox {
  name: string;
  bytes: number;
  count: number;
  /** The number of groups inside that the server has omitted, and their bytes. */
  leftOut: number;
  leftOutBytes: number;
  inside: CensusBox[];
}

type PlacedBox = HierarchyRectangularNode<CensusBox>;

/** Boxes with fewer pixels are not drawn. */
const LEAST = 6;
/** The height of a box's text, above the boxes inside. */
const LABEL = 16;
const GREATEST = 64;
/** The zoom factor of + and -, and the part of the view by which Shift with an arrow key moves. */
const [STEP, PAN] = [1.5, 0.2];
/** A pointer that moves by fewer pixels than this makes a click. */
const STILL = 4;
const DIRECTIONS: Record<string, Direction> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };

export class MapView {
  readonly element = create("div", "map");
  private readonly boxes = create("div", "boxes");
  private readonly about = create("span", "about");
  private root: CensusBox | null = null;
  private scale = 1;
  /** The position of the upper left corner in the whole map. */
  private x = 0;
  private y = 0;
  private laid: PlacedBox | null = null;
  /** The visible boxes. */
  private readonly drawn = new Map<CensusBox, HTMLButtonElement>();
  private placed = new Map<CensusBox, PlacedBox>();
  /** The box that Tab moves to. */
  private active: CensusBox | null = null;
  /** Whether the pointer has moved the map since it was pressed. */
  private hasMoved = false;
  private readonly request = new AbortController();
  private readonly observer = new ResizeObserver(() => this.arrange());

  constructor(
    private readonly api: Api,
    private readonly query: Record<string, unknown>,
    private readonly onChoose: (name: string) => void,
    private readonly onState: (text: string, isError: boolean) => void,
    private readonly busy: string,
  ) {
    const { boxes } = this;
    boxes.setAttribute("role", "group");
    setName(boxes, "Tree map: arrow keys go from box to box, Enter opens a group, + and - zoom, Shift with an arrow moves, 0 shows all");
    const bar = create("div", "map-bar");
    bar.append(
      button("−", () => this.zoom(1 / STEP), "Zoom out (key: -)"),
      button("+", () => this.zoom(STEP), "Zoom in (key: +)"),
      button("Whole map", () => this.whole(), "Show all (key: 0)"),
      this.about,
    );
    this.element.append(bar, boxes);
    boxes.addEventListener("wheel", (event) => this.turned(event), { passive: false });
    boxes.addEventListener("keydown", (event) => this.pressed(event));
    boxes.addEventListener("pointerdown", ({ clientX: x, clientY: y }) => [this.hasMoved, this.from] = [false, { x, y }]);
    boxes.addEventListener("pointermove", (event) => this.dragged(event));
    boxes.addEventListener("click", (event) => this.clicked(event));
    boxes.addEventListener("focusin", (event) => this.focused(event));
    this.observer.observe(boxes);
    void this.load();
  }

  close() {
    this.request.abort();
    this.observer.disconnect();
  }

  private async load() {
    this.onState(this.busy, false);
    try {
      this.root = await this.api.post<CensusBox>("query", { query: this.query }, this.request.signal);
      const { bytes: all, count: nodes } = this.root;
      this.onState(nodes > 0 ? `${bytes(all)} in ${count(nodes)} nodes` : this.query.filter ? "No matches." : "Empty.", false);
      this.arrange();
    } catch (error) {
      if (this.request.signal.aborted) return;
      this.onState((error as Error).message, true);
      this.element.insertBefore(retry(() => void this.load()), this.boxes);
    }
  }

  /** Places all boxes for the size and the scale of the view. */
  private arrange() {
    const { clientWidth: width, clientHeight: height } = this.boxes;
    if (!this.root || !width || !height) return;
    const own = (box: CensusBox) => Math.max(0, box.bytes - box.inside.reduce((sum, child) => sum + child.bytes, 0));
    const tree = hierarchy(this.root, (box) => box.inside).sum(own);
    const size: [number, number] = [width * this.scale, height * this.scale];
    this.laid = treemap<CensusBox>().size(size).paddingTop((node) => (node.depth > 0 ? LABEL : 0)).paddingInner(1)(tree);
    this.draw();
  }

  /** Moves the map so that the view stays inside it, and draws the visible boxes. */
  private draw() {
    const { laid, boxes } = this;
    if (!laid) return;
    const { clientWidth: width, clientHeight: height } = boxes;
    this.x = Math.max(0, Math.min(this.x, width * (this.scale - 1)));
    this.y = Math.max(0, Math.min(this.y, height * (this.scale - 1)));
    const hidden = { groups: 0, bytes: 0 };
    const inSight = new Map<CensusBox, PlacedBox>();
    laid.each((node) => {
      hidden.groups += node.data.leftOut;
      hidden.bytes += node.data.leftOutBytes;
    });
    const visit = (node: PlacedBox) => {
      for (const child of node.children ?? []) {
        if (child.x1 - child.x0 < LEAST || child.y1 - child.y0 < LEAST) {
          hidden.groups += 1;
          hidden.bytes += child.data.bytes;
          // The bytes of groups that the server omitted inside of the box are counted separately.
          child.each(({ data }) => (hidden.bytes -= data.leftOutBytes));
          continue;
        }
        const isIn = child.x1 > this.x && child.x0 < this.x + width && child.y1 > this.y && child.y0 < this.y + height;
        if (isIn) inSight.set(child.data, child);
        visit(child);
      }
    };
    visit(laid);
    this.placed = inSight;
    if (!this.active || !inSight.has(this.active)) this.active = inSight.keys().next().value ?? null;
    // Elements are kept, so that the focus stays. If the focused box leaves the view, the active box gets the focus.
    // In the document, the boxes inside of a box come after that box.
    const hadFocus = boxes.contains(document.activeElement);
    for (const [box, element] of this.drawn) {
      if (inSight.has(box)) continue;
      element.remove();
      this.drawn.delete(box);
    }
    if (this.drawn.size === 0) boxes.replaceChildren();
    const tops = laid.children ?? [];
    for (const node of inSight.values()) this.place(node, tops);
    if (hadFocus && !boxes.contains(document.activeElement)) this.drawn.get(this.active!)?.focus({ preventScroll: true });
    setText(this.about, hidden.groups === 0 ? "" : `${count(hidden.groups)} group${hidden.groups === 1 ? "" : "s"} with ${bytes(hidden.bytes)} too small to show`);
    setTip(this.about, "To see them, zoom in or open the aggregate");
    const { dataset } = document.documentElement;
    dataset.boxes = String(inSight.size);
    this.element.dataset.scale = String(this.scale);
  }

  private place(node: PlacedBox, tops: PlacedBox[]) {
    let element = this.drawn.get(node.data);
    const { name, bytes: size, count: nodes } = node.data;
    const text = `${name} · ${bytes(size)} · ${count(nodes)}`;
    if (!element) {
      const top = node.ancestors().at(-2)!;
      element = button("", () => {}, text);
      element.className = `k${tops.indexOf(top) % 5} d${Math.min(3, node.depth)}`;
      setName(element, text);
      this.drawn.set(node.data, element);
      this.boxes.append(element);
    }
    const [width, height] = [node.x1 - node.x0, node.y1 - node.y0];
    element.style.cssText = `left:${node.x0 - this.x}px;top:${node.y0 - this.y}px;width:${width}px;height:${height}px`;
    element.tabIndex = node.data === this.active ? 0 : -1;
    // The text of a box that starts outside of the view is placed in the visible part.
    element.style.padding = `${Math.max(1, this.y - node.y0 + 1)}px 4px 1px ${Math.max(4, this.x - node.x0 + 4)}px`;
    setText(element, width > 30 && height > 13 ? text : "");
  }

  /** Zooms around a point of the view, by default its middle. The point stays at the same place of the view. */
  private zoom(factor: number, at?: { x: number; y: number }) {
    const { clientWidth: width, clientHeight: height } = this.boxes;
    const scale = Math.max(1, Math.min(GREATEST, this.scale * factor));
    if (scale === this.scale || !this.laid) return;
    const point = at ?? { x: width / 2, y: height / 2 };
    const under = this.boxAt(this.laid, this.x + point.x, this.y + point.y);
    const part = { x: (this.x + point.x - under.x0) / (under.x1 - under.x0), y: (this.y + point.y - under.y0) / (under.y1 - under.y0) };
    this.scale = scale;
    this.arrange();
    // Texts have the same height at any scale, so boxes do not scale exactly. The map moves by the box under the point.
    const same = this.laid.find(({ data }) => data === under.data) ?? this.laid;
    this.x = same.x0 + part.x * (same.x1 - same.x0) - point.x;
    this.y = same.y0 + part.y * (same.y1 - same.y0) - point.y;
    this.draw();
  }

  /** Returns the innermost box at a position of the map. */
  private boxAt(node: PlacedBox, x: number, y: number): PlacedBox {
    const inside = node.children?.find((child) => x >= child.x0 && x < child.x1 && y >= child.y0 && y < child.y1);
    return inside ? this.boxAt(inside, x, y) : node;
  }

  private whole() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.arrange();
  }

  private turned(event: WheelEvent) {
    event.preventDefault();
    const { left, top } = this.boxes.getBoundingClientRect();
    // As in Firefox, each pixel zooms by one percent. For a wheel that reports lines, a line counts as about 16 pixels.
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : 16 * event.deltaY;
    this.zoom(Math.max(0.5, Math.min(2, 1 - 0.01 * pixels)), { x: event.clientX - left, y: event.clientY - top });
  }

  private from: { x: number; y: number } | null = null;

  private dragged(event: PointerEvent) {
    if (event.buttons !== 1) return void (this.from = null);
    this.from ??= { x: event.clientX, y: event.clientY };
    const [x, y] = [event.clientX - this.from.x, event.clientY - this.from.y];
    if (!this.hasMoved && Math.hypot(x, y) < STILL) return;
    this.hasMoved = true;
    this.boxes.setPointerCapture(event.pointerId);
    this.from = { x: event.clientX, y: event.clientY };
    this.x -= x;
    this.y -= y;
    this.draw();
  }

  private boxOf(target: EventTarget | null): CensusBox | undefined {
    return [...this.drawn].find(([, element]) => element === target)?.[0];
  }

  private clicked(event: MouseEvent) {
    const box = this.boxOf(event.target);
    // The end of a drag opens nothing. A click by Enter has no pointer.
    const isDragged = this.hasMoved && event.detail > 0;
    this.hasMoved = false;
    if (box && !isDragged) this.onChoose(box.name);
  }

  private focused(event: FocusEvent) {
    const box = this.boxOf(event.target);
    if (!box || box === this.active) return;
    if (this.active) this.drawn.get(this.active)?.setAttribute("tabindex", "-1");
    this.active = box;
    this.drawn.get(box)!.tabIndex = 0;
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const direction = DIRECTIONS[event.key];
    const at = this.active && this.placed.get(this.active);
    if (direction && event.shiftKey) this.pan(direction);
    else if (direction && at) this.step(at, direction);
    else if (event.key === "+" || event.key === "-") {
      const middle = at && { x: (at.x0 + at.x1) / 2 - this.x, y: (at.y0 + at.y1) / 2 - this.y };
      this.zoom(event.key === "+" ? STEP : 1 / STEP, middle ?? undefined);
    } else if (event.key === "0") this.whole();
    else return;
    event.preventDefault();
  }

  private pan(direction: Direction) {
    const { clientWidth: width, clientHeight: height } = this.boxes;
    const sign = direction === "left" || direction === "up" ? -1 : 1;
    if (direction === "left" || direction === "right") this.x += sign * PAN * width;
    else this.y += sign * PAN * height;
    this.draw();
  }

  /** Moves to the next box inside the same box; otherwise to a box beside that box. The Down key goes into a box. */
  private step(at: PlacedBox, direction: Direction) {
    const all = [...this.placed.values()];
    const inner = direction === "down" ? all.find((one) => one.parent === at) : undefined;
    let next = inner;
    for (let from: PlacedBox = at; !next && from.parent; from = from.parent) {
      next = nearest(from, all.filter((one) => one.parent === from.parent), direction);
      // Upwards, the surrounding box has priority over the boxes beside it.
      if (!next && direction === "up" && from.parent.depth > 0) next = from.parent;
    }
    if (!next) return;
    this.reveal(next);
    this.drawn.get(next.data)?.focus({ preventScroll: true });
  }

  /** Moves the map by the smallest distance that makes the start of a box visible. */
  private reveal({ x0, x1, y0, y1 }: PlacedBox) {
    const { clientWidth: width, clientHeight: height } = this.boxes;
    this.x = Math.max(Math.min(this.x, x0), Math.min(x0, x1 - width));
    this.y = Math.max(Math.min(this.y, y0), Math.min(y0, y1 - height));
    this.draw();
  }
}
