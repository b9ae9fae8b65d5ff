// All stacks as one graph. The width of a frame is the memory that the function and its callees allocated. The
// outermost frames are at the top; in the inverted graph, the innermost frames. Only wide, visible frames have
// elements.

import { add, type Amount, formatAmount, formatBytes, shareText, Units } from "../text/amount";
import { create, setName, setText, setTip } from "../widgets/elements";
import { showText } from "../text/escape";
import { CrateColours } from "../data/crate_colours";
import { type AmountsBefore, type FlameGraph, type Frame, inverted } from "../data/flame";
import { shortName } from "../data/stacks";
import type { Model } from "../model/model";
import type { View } from "./view";

const ROW = 18;
/** Frames with fewer pixels are not drawn. */
const NARROWEST = 3;
/** Frames with fewer pixels have no text. */
const LEGIBLE = 30;
/** Boxes with fewer pixels have no amount beside the name. */
const ROOMY = 140;
/** Names with more characters are cut. */
const LONGEST = 2000;
/** The name of the sum of frames that were too small for the graph. */
const SMALL = "(small)";

/** A frame that is wide enough, and its position. */
interface FlameBox {
  frame: Frame;
  row: number;
  left: number;
  width: number;
}

export class FlameView implements View {
  readonly id = "flame";
  readonly title = "Flame graph";
  readonly isOfDump = true;
  readonly element = create("div", "flame");
  readonly focused = create("div", "boxes");
  private readonly spacer = create("div", "spacer");
  private readonly layer = create("div");
  private readonly search = create("input");
  private readonly invert = create("input");
  private readonly found = create("output");
  private readonly about = create("div", "about");
  private readonly legend = create("p", "legend");
  private colours: CrateColours;
  /** The drawn tree. */
  private root: Frame;
  /** The frame of the tree that has the full width. */
  private zoomed: Frame;
  /** The frame whose stacks are in the inverted tree. */
  private base: Frame;
  private active: Frame;
  private rows: FlameBox[][] = [];

  constructor(
    private graph: FlameGraph,
    private readonly model: Model,
    /** What the number `blocks` of a frame counts: a noun in the singular. */
    private readonly counted = "block",
  ) {
    this.root = this.zoomed = this.base = this.active = graph.root;
    this.colours = new CrateColours(graph.root);
    this.search.type = "search";
    this.search.placeholder = "part of a function's name";
    this.search.spellcheck = false;
    setName(this.search, "Search functions");
    this.search.addEventListener("input", () => this.update());
    this.invert.type = "checkbox";
    this.invert.addEventListener("change", () => this.turn());
    const label = create("label");
    setTip(label, "Start the zoomed part with the functions that allocated. Their callers are below them.");
    label.append(this.invert, " inverted");
    const out = create("button", "out", "Zoom out");
    out.type = "button";
    out.addEventListener("click", () => this.zoom(this.root));
    const bar = create("div", "bar");
    bar.append(this.search, label, out, this.found);
    const boxes = this.focused;
    boxes.tabIndex = 0;
    boxes.setAttribute("role", "tree");
    setName(boxes, "Stacks");
    boxes.append(this.spacer, this.layer);
    boxes.addEventListener("click", (event) => this.to(event, (frame) => this.zoom(frame)));
    boxes.addEventListener("mouseover", (event) => this.to(event, (frame) => this.showDetails(frame)));
    boxes.addEventListener("keydown", (event) => this.pressed(event));
    boxes.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.append(bar, this.about, boxes, this.legend);
    new ResizeObserver(() => this.update()).observe(boxes);
  }

  /** Shows another graph. The zoomed frame and the active frame stay if they exist in the new graph. */
  show(graph: FlameGraph) {
    const [zoomed, active] = [pathOf(this.zoomed), pathOf(this.active)];
    this.base = reach(graph.root, pathOf(this.base));
    this.graph = graph;
    this.colours = new CrateColours(graph.root);
    this.root = this.invert.checked ? inverted(this.base) : graph.root;
    this.zoomed = reach(this.root, zoomed);
    this.active = reach(this.root, active);
    if (this.active !== this.zoomed && !isAbove(this.zoomed, this.active) && !isAbove(this.active, this.zoomed)) {
      this.active = this.zoomed;
    }
  }

  /** Zooms to a path of names below the root, or to the last frame on the path that exists. */
  goTo(path: string[]) {
    if (this.invert.checked) {
      this.invert.checked = false;
      this.turn();
    }
    this.zoom(reach(this.root, path));
  }

  update() {
    this.place();
    const wanted = this.search.value.trim().toLowerCase();
    setText(this.found, wanted ? this.matching(wanted) : "");
    this.showDetails(this.active);
    this.drawLegend();
    this.draw();
  }

  /** Shows the colour and the share of each large crate. A change has colours for growth instead. */
  private drawLegend() {
    const keys = this.root.before ? [] : this.colours.crates.map(({ name, colour, part }) => create("span", `key ${colour}`, `${name} ${shareText(part, 1)}`));
    this.legend.hidden = keys.length === 0;
    this.legend.replaceChildren(...keys);
  }

  /** Places the frames. The callers of the zoomed frame have the full width. */
  private place() {
    const width = this.focused.clientWidth;
    this.rows = [];
    if (width === 0) return;
    const above: Frame[] = [];
    for (let frame = this.zoomed.caller; frame; frame = frame.caller) above.unshift(frame);
    above.forEach((frame, row) => this.rows.push([{ frame, row, left: 0, width }]));
    let boxes: FlameBox[] = [{ frame: this.zoomed, row: above.length, left: 0, width }];
    while (boxes.length > 0) {
      this.rows.push(boxes);
      boxes = boxes.flatMap((box) => inside(box));
    }
    this.spacer.style.height = `${this.rows.length * ROW}px`;
  }

  private draw() {
    const { scrollTop, clientHeight } = this.focused;
    const first = Math.floor(scrollTop / ROW);
    const last = Math.ceil((scrollTop + clientHeight) / ROW);
    const wanted = this.search.value.trim().toLowerCase();
    this.focused.removeAttribute("aria-activedescendant");
    this.layer.replaceChildren(
      ...this.rows.slice(first, last).flatMap((row) => row.map((box, i) => this.frameElement(box, i, wanted))),
    );
  }

  private frameElement(box: FlameBox, index: number, wanted: string): HTMLElement {
    const { frame, row } = box;
    const element = create("div", "frame");
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(row + 1));
    element.dataset.row = String(row);
    element.dataset.index = String(index);
    if (frame.before) element.classList.add(changeClass(frame));
    else element.classList.add(frame.name === SMALL ? "rest" : this.colours.colour(frame.name));
    if (isAbove(frame, this.zoomed)) element.classList.add("above");
    if (wanted) element.classList.add(matches(frame, wanted) ? "match" : "other");
    if (frame === this.active) {
      element.id = "active-frame";
      element.classList.add("active");
      this.focused.setAttribute("aria-activedescendant", element.id);
    }
    element.style.left = `${box.left}px`;
    element.style.top = `${row * ROW}px`;
    element.style.width = `${box.width}px`;
    const text = this.describe(frame);
    setTip(element, ...text.split("\n"));
    setName(element, ...text.split("\n"));
    if (box.width >= LEGIBLE) setText(element, signOf(frame) + showText(shortName(frame.name)).slice(0, 300));
    if (box.width >= ROOMY && !frame.before) {
      // The style adds the amount behind the name.
      const mark = frame.estimated ? "~" : "";
      element.dataset.amount = `${mark}${formatBytes(frame.bytes, false)} · ${shareText(frame.bytes, this.graph.root.bytes)}`;
    }
    return element;
  }

  private describe(frame: Frame): string {
    const mark = frame.estimated ? "~" : "";
    if (frame.before) return `${showText(frame.name).slice(0, LONGEST)}\n${this.describeChange(frame, frame.before, mark)}`;
    const bytes = formatBytes(frame.bytes, this.model.settings.verbose);
    const blocks = formatAmount(frame.blocks, Units.Count, true);
    const share = shareText(frame.bytes, this.graph.root.bytes);
    const plural = Number(frame.blocks) === 1 ? "" : "s";
    return `${showText(frame.name).slice(0, LONGEST)}\n${mark}${bytes} (${share}) in ${mark}${blocks} ${this.counted}${plural}`;
  }

  private describeChange(frame: Frame, before: AmountsBefore, mark: string): string {
    const { verbose } = this.model.settings;
    const bytes = (amount: Amount) => mark + formatBytes(amount, verbose);
    const blocks = (amount: Amount) => mark + formatAmount(amount, Units.Count, true);
    const change = Number(frame.bytes) - before.bytes;
    const sign = change > 0 ? "+" : "";
    const counts = `${blocks(before.blocks)} to ${blocks(frame.blocks)} blocks`;
    return `${sign}${formatBytes(change, verbose)}: from ${bytes(before.bytes)} to ${bytes(frame.bytes)}, ${counts}`;
  }

  private showDetails(frame: Frame) {
    setText(this.about, this.describe(frame).replace("\n", " · "));
  }

  /**
   * Returns, as a text, the memory of the stacks in the zoomed frame that contain a function with `wanted` in its name.
   */
  private matching(wanted: string): string {
    let bytes: Amount = 0;
    const left = [this.zoomed];
    for (let frame = left.pop(); frame; frame = left.pop()) {
      if (matches(frame, wanted)) bytes = add(bytes, frame.before ? Number(frame.bytes) - frame.before.bytes : frame.bytes);
      else for (const called of frame.called) left.push(called);
    }
    const amount = formatBytes(bytes, this.model.settings.verbose);
    if (this.zoomed.before) return `matched: ${bytes > 0 ? "+" : ""}${amount}`;
    return `matched: ${amount} (${shareText(bytes, this.zoomed.bytes)})`;
  }

  private zoom(frame: Frame) {
    this.zoomed = this.active = frame;
    this.update();
    this.reveal();
  }

  /** Inverts the zoomed part, or returns to the normal graph. */
  private turn() {
    if (this.invert.checked) {
      this.base = this.zoomed;
      this.root = inverted(this.base);
      this.zoom(this.root);
    } else {
      this.root = this.graph.root;
      this.zoom(this.base);
    }
  }

  private to(event: Event, go: (frame: Frame) => void) {
    const element = (event.target as Element).closest<HTMLElement>(".frame");
    const box = element && this.rows[Number(element.dataset.row)]?.[Number(element.dataset.index)];
    if (box) go(box.frame);
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = this.rows.findIndex((row) => row.some((box) => box.frame === this.active));
    const index = row < 0 ? -1 : this.rows[row].findIndex((box) => box.frame === this.active);
    const beside = (step: number) => this.rows[row]?.[index + step]?.frame;
    const below = () => this.rows[row + 1]?.find((box) => box.frame.caller === this.active)?.frame;
    const moves: Record<string, () => Frame | null | undefined> = {
      ArrowDown: below,
      ArrowUp: () => this.active.caller,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => this.rows[0]?.[0]?.frame,
    };
    if (moves[event.key]) {
      this.active = moves[event.key]() ?? this.active;
      this.showDetails(this.active);
      this.reveal();
      this.draw();
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(this.active);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.zoom(this.zoomed.caller ?? this.zoomed);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Scrolls by the smallest distance that makes the active frame visible. */
  private reveal() {
    const row = this.rows.findIndex((row) => row.some((box) => box.frame === this.active));
    const { scrollTop, clientHeight } = this.focused;
    if (row * ROW < scrollTop) this.focused.scrollTop = row * ROW;
    else if ((row + 1) * ROW > scrollTop + clientHeight) this.focused.scrollTop = (row + 1) * ROW - clientHeight;
  }
}

/** Returns boxes for the callees of a frame. A callee that is too narrow has no box. */
function inside({ frame, row, left, width }: FlameBox): FlameBox[] {
  const boxes: FlameBox[] = [];
  for (const called of frame.called) {
    const part = frame.size > 0 ? (called.size / frame.size) * width : 0;
    // The remaining frames are smaller.
    if (part < NARROWEST) break;
    boxes.push({ frame: called, row: row + 1, left, width: part });
    left += part;
  }
  return boxes;
}

function isAbove(frame: Frame, other: Frame): boolean {
  for (let caller = other.caller; caller; caller = caller.caller) if (caller === frame) return true;
  return false;
}

/** Returns the names from below the root to a frame. */
function pathOf(frame: Frame): string[] {
  const path: string[] = [];
  for (let at = frame; at.caller; at = at.caller) path.unshift(at.name);
  return path;
}

/** Returns the frame at a path, or the last frame on the path that exists. */
function reach(root: Frame, path: string[]): Frame {
  let at = root;
  for (const name of path) {
    const next = at.called.find((called) => called.name === name);
    if (!next) break;
    at = next;
  }
  return at;
}

/** Returns the class for the size of a change relative to the larger side: three steps for each direction. */
function changeClass(frame: Frame): string {
  const { bytes, larger } = frame.before!;
  const change = Number(frame.bytes) - bytes;
  if (change === 0 || larger === 0) return "same";
  const part = Math.abs(change) / larger;
  return `${change > 0 ? "grown" : "shrunk"}${part > 0.5 ? 3 : part > 0.1 ? 2 : 1}`;
}

/** A sign shows the direction of a change, because colour alone is not enough. */
function signOf(frame: Frame): string {
  if (!frame.before) return "";
  const change = Number(frame.bytes) - frame.before.bytes;
  return change > 0 ? "+ " : change < 0 ? "− " : "";
}

function matches(frame: Frame, wanted: string): boolean {
  return frame.name.toLowerCase().includes(wanted);
}
