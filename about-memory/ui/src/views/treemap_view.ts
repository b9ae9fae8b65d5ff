// A treemap: the area of a box is its amount. It starts at `explicit`; in a file without this tree, at the first tree
// in bytes. A box contains the boxes of its children if there is room.
//
// Pointer and keyboard have the same actions. A click or Enter goes into a box. The trail, Backspace or Escape goes
// out. Arrow keys move between the boxes of the first level.

import { hierarchy, type HierarchyRectangularNode, treemap } from "d3-hierarchy";
import { add, type Amount, formatAmount, shareText, Units } from "../text/amount";
import { type ReportData, isLeaf, type ReportProcess, rawName, units } from "../data/reports";
import { create, setName, setText, setTip, words } from "../widgets/elements";
import { showName, showText } from "../text/escape";
import type { Model } from "../model/model";
import { type Direction, nearest } from "../widgets/nearest";
import type { View } from "./view";

/**
 * A level has at most this many boxes; one more box shows the sum of all other boxes. The menu has at most this many
 * trees.
 */
const MOST = 150;
/** A box shows its children if it has at least this many pixels in each direction. */
const ROOMY = 60;
/** The height of a line of text in a box. */
const LINE = 14;
/** The height of the strip above the children of a box, and the minimum height of a box with text. */
const LABEL = 16;
/** Smaller boxes have no border, because a border would make them too large. */
const SMALL = 10;
/** A box that is narrower than this, or lower than a line, has no text. */
const LEGIBLE = 24;
const COLOURS = 6;
/** Descriptions and names with more characters are cut. */
const LONGEST = 2000;
const LONGEST_NAME = 200;
/**
 * The menu entry for resident memory instead of a tree. The name of a tree is the part of a path before the first `/`,
 * so no tree has this name.
 */
const RESIDENT = "/";
const EXPLICIT = "explicit";

/** Something that has a box: all processes, one process, or a node of a tree. */
interface ReportBox {
  /** The text in the trail and in the box. It is unique within the parent. */
  label: string;
  /** The name in descriptions: a path or a process. */
  name: string;
  /** The process of a node. Empty if the data has only one process. */
  process: string;
  /** The area. */
  size: number;
  amount: Amount;
  units: Units;
  /** Makes the boxes of the children; `null` for a leaf. */
  inside: (() => ReportBox[]) | null;
  /** The box that is shown instead of this box when the reader goes into this box. */
  opens?: ReportBox | null;
  isRest?: boolean;
  /** The children, if they are drawn. */
  children?: ReportBox[];
}

type PlacedReport = HierarchyRectangularNode<ReportBox>;

/** A box of the first level. */
interface Target {
  placed: PlacedReport;
  element: HTMLElement;
}

export class TreemapView implements View {
  readonly id = "treemap";
  readonly title = "Treemap";
  readonly element = create("div", "treemap");
  readonly focused = create("div", "boxes");
  private readonly trail = create("nav", "trail");
  private readonly about = create("div", "about");
  private readonly choice = create("select");
  /** Marks the active box. The box cannot show the mark itself, because its children cover it. */
  private readonly ring = create("div", "ring");
  /** The labels from the outermost box to the shown box. */
  private path: string[] = [];
  /** The label of the box that keys act on. */
  private active = "";
  private targets: Target[] = [];

  constructor(private readonly model: Model) {
    setName(this.trail, "Position in the tree");
    setName(this.choice, "Tree to show");
    this.choice.addEventListener("change", () => this.go([]));
    this.ring.setAttribute("aria-hidden", "true");
    const boxes = this.focused;
    boxes.tabIndex = 0;
    boxes.setAttribute("role", "tree");
    setName(boxes, "Treemap: arrow keys move, Enter goes in, Backspace goes out");
    boxes.addEventListener("keydown", (event) => this.pressed(event));
    boxes.addEventListener("mouseover", (event) => {
      const box = (event.target as Element).closest<HTMLElement>(".box");
      if (box) this.showDetails(box);
    });
    boxes.addEventListener("mouseleave", () => this.activate(this.active));
    const bar = create("div", "bar");
    bar.append(this.choice, this.trail);
    this.element.append(bar, this.about, boxes);
    new ResizeObserver(() => this.update()).observe(boxes);
  }

  update() {
    const { clientWidth: width, clientHeight: height } = this.focused;
    if (width === 0 || height === 0) return;
    if (this.choice.length === 0) this.fillChoice();
    const trail = this.walk();
    this.drawTrail(trail);
    const shown = trail[trail.length - 1];
    const root = { ...shown, children: fill(shown) };
    for (const child of root.children) if (!child.opens) child.children = fill(child);
    const tree = hierarchy<ReportBox>(root, (box) => box.children).sum((box) => (box.children?.length ? 0 : box.size));
    const placed = treemap<ReportBox>()
      .size([width, height])
      .paddingInner(1)
      .paddingTop((node) => (node.depth === 1 ? LABEL : 0))
      .round(true)(tree);
    const elements: HTMLElement[] = [];
    this.targets = (placed.children ?? []).map((node, index) => {
      const element = this.draw(node, index);
      element.id = `box-${index}`;
      elements.push(element);
      const inner = isRoomy(node) ? (node.children ?? []) : [];
      if (node.data.inside) element.setAttribute("aria-expanded", String(inner.length > 0));
      elements.push(...inner.map((node) => this.draw(node, index)));
      return { placed: node, element };
    });
    if (elements.length === 0) elements.push(create("p", "", "Nothing to show as boxes."));
    this.focused.replaceChildren(...elements, this.ring);
    this.activate(this.active);
  }

  /** Runs once, when the view is first shown, because there may be very many trees. */
  private fillChoice() {
    const { data } = this.model;
    const all = byteTrees(data);
    const names = all.slice(0, MOST);
    if (data.processes.some((process) => process.resident !== "0")) names.splice(1, 0, RESIDENT);
    for (const name of names) {
      const option = create("option", "", name === RESIDENT ? "resident" : showName(name));
      option.value = name;
      this.choice.append(option);
    }
    if (all.length <= MOST) return;
    const rest = create("option", "", `(${all.length - MOST} more)`);
    rest.disabled = true;
    this.choice.append(rest);
  }

  /** Shows the box at a path. Keys then act on the box with the label `active`, or else on the largest box. */
  private go(path: string[], active = "") {
    this.path = path;
    this.active = active;
    this.update();
  }

  private goOut() {
    const from = this.path[this.path.length - 1];
    this.go(this.path.slice(0, -1), from);
  }

  /** Returns the boxes along the path, as far as they still exist. */
  private walk(): ReportBox[] {
    const trail = [this.top()];
    for (const label of this.path) {
      const next = trail[trail.length - 1].inside?.().find((box) => box.label === label);
      if (!next?.inside) break;
      trail.push(next.opens ?? next);
    }
    this.path = this.path.slice(0, trail.length - 1);
    return trail;
  }

  private drawTrail(trail: ReportBox[]) {
    const links = trail.flatMap((box, depth) => {
      const button = create("button", "", box.label);
      button.type = "button";
      button.disabled = depth === trail.length - 1;
      button.addEventListener("click", () => {
        this.go(this.path.slice(0, depth), this.path[depth]);
        this.focused.focus();
      });
      return depth === 0 ? [button] : [words(" › "), button];
    });
    const shown = trail[trail.length - 1];
    this.trail.replaceChildren(...links, words(` ${this.amountText(shown, this.model.settings.verbose)}`));
  }

  private draw(node: PlacedReport, colour: number): HTMLElement {
    const box = node.data;
    const [width, height] = [node.x1 - node.x0, node.y1 - node.y0];
    const element = create("div", "box");
    if (box.isRest) element.classList.add("rest");
    else if (this.model.data.isDiff) element.classList.add(box.amount < 0 ? "shrink" : "grow");
    else element.classList.add(`k${colour % COLOURS}`);
    if (node.depth > 1) element.classList.add("deep");
    if (Math.min(width, height) < SMALL) element.classList.add("small");
    place(element, node);
    const text = this.describe(box, node.parent!.data);
    setTip(element, ...text.split("\n"));
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(node.depth));
    setName(element, ...text.split("\n"));
    if (width >= LEGIBLE && height >= LABEL) element.append(this.caption(node, height));
    if (box.inside) {
      const labels = node.ancestors().slice(0, -1).map((node) => node.data.label).reverse();
      element.classList.add("opens");
      element.addEventListener("click", () => this.go([...this.path, ...labels]));
    }
    return element;
  }

  /** Returns name, amount and share. In a narrow box these parts wrap to as many lines as fit. */
  private caption(node: PlacedReport, height: number): HTMLElement {
    const box = node.data;
    const caption = create("div", "caption");
    const isStrip = node.depth === 1 && node.children && isRoomy(node);
    const lines = isStrip ? 1 : Math.floor((height - 2) / LINE);
    caption.style.maxHeight = `${lines * LINE}px`;
    caption.append(
      create("span", "name", box.label.slice(0, LONGEST_NAME)),
      " ",
      create("span", "", this.amountText(box, this.model.settings.verbose)),
      " ",
      create("span", "", `(${shareText(box.amount, node.parent!.data.amount)})`),
    );
    return caption;
  }

  /** Returns the path, the exact amount, the share of the parent and, unless the parent is the process, the process. */
  private describe(box: ReportBox, parent: ReportBox): string {
    const exact = this.amountText(box, true);
    const amount = this.model.settings.verbose ? exact : `${this.amountText(box, false)} (${exact})`;
    const share = `${shareText(box.amount, parent.amount)} of ${parent.name.slice(0, LONGEST)}`;
    const process = box.process && parent.name !== box.process ? `\n${box.process.slice(0, LONGEST)}` : "";
    return `${box.name.slice(0, LONGEST)}\n${amount}, ${share}${process}`;
  }

  private amountText(box: ReportBox, verbose: boolean): string {
    const sign = this.model.data.isDiff && box.amount > 0 ? "+" : "";
    return sign + formatAmount(box.amount, box.units, verbose);
  }

  /** Describes a box in the line above the boxes. */
  private showDetails(element: HTMLElement | undefined) {
    setText(this.about, element ? element.title.replaceAll("\n", " · ") : "");
  }

  /** Makes the box with that label active, or else the largest box. */
  private activate(label: string) {
    const target = this.targets.find(({ placed }) => placed.data.label === label) ?? this.targets[0];
    this.ring.hidden = !target;
    this.showDetails(target?.element);
    if (!target) {
      this.focused.removeAttribute("aria-activedescendant");
      return;
    }
    this.active = target.placed.data.label;
    this.focused.setAttribute("aria-activedescendant", target.element.id);
    place(this.ring, target.placed);
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isOut = event.key === "Escape" || event.key === "Backspace";
    if (isOut && this.path.length > 0) {
      this.goOut();
      event.preventDefault();
      return;
    }
    // A box without a pixel cannot be seen, so keys skip it.
    const visible = this.targets.map(({ placed }) => placed).filter((node) => node.x1 > node.x0 && node.y1 > node.y0);
    const active = visible.find((node) => node.data.label === this.active) ?? visible[0];
    if (!active) return;
    const move = (direction: Direction) => nearest(active, visible, direction);
    const moves: Record<string, () => PlacedReport | undefined> = {
      ArrowLeft: () => move("left"),
      ArrowRight: () => move("right"),
      ArrowUp: () => move("up"),
      ArrowDown: () => move("down"),
      Home: () => visible[0],
      End: () => visible[visible.length - 1],
    };
    if (moves[event.key]) this.activate((moves[event.key]() ?? active).data.label);
    else if (event.key !== "Enter" && event.key !== " ") return;
    else if (active.data.inside) this.go([...this.path, active.data.label]);
    event.preventDefault();
  }

  /** Returns the outermost box: all processes, or the chosen tree of the only process. */
  private top(): ReportBox {
    const { data, forest } = this.model;
    const chosen = this.choice.value;
    const isResident = chosen === RESIDENT;
    const several = data.processes.length > 1;
    const boxes = data.processes.map((process): ReportBox => {
      const root = isResident ? process.explicit : findTree(data, process, chosen);
      const tree = root >= 0 && forest.isLeft(root) ? this.node(root, root, "", several ? process : null) : null;
      const name = showText(process.name);
      const amount = isResident ? BigInt(process.resident) : (tree?.amount ?? 0);
      return {
        label: name,
        name,
        process: "",
        size: isResident ? Math.abs(Number(amount)) : (tree?.size ?? 0),
        amount,
        units: Units.Bytes,
        inside: tree?.inside ?? null,
        opens: isResident && tree ? { ...tree, label: `${name}: ${tree.name}` } : null,
      };
    });
    if (boxes.length === 1 && !isResident) {
      const name = showName(chosen);
      return { ...boxes[0], label: name, name };
    }
    const amount = boxes.reduce<Amount>((sum, box) => add(sum, box.amount), 0);
    const name = "All processes";
    return { label: name, name, process: "", size: 1, amount, units: Units.Bytes, inside: () => unique(boxes) };
  }

  /** Returns the box of a node, or of a chain of only children from `top` to `node`, below a path. */
  private node(top: number, node: number, above: string, process: ReportProcess | null): ReportBox {
    const { forest } = this.model;
    const { data } = forest;
    const weight = Number(forest.weight(node));
    const label = showName(forest.name(top, node));
    const name = above + label;
    return {
      label,
      name,
      process: process ? showText(process.name) : "",
      size: data.isDiff ? Math.abs(weight) : Math.max(0, weight),
      amount: forest.amount(node),
      units: units(data, node),
      inside: isLeaf(data, node)
        ? null
        : () => {
            const { tops, nodes } = forest.children(node);
            return unique(nodes.map((end, i) => this.node(tops[i], end, `${name}/`, process)));
          },
    };
  }
}

function place(element: HTMLElement, node: PlacedReport) {
  element.style.left = `${node.x0}px`;
  element.style.top = `${node.y0}px`;
  element.style.width = `${node.x1 - node.x0}px`;
  element.style.height = `${node.y1 - node.y0}px`;
}

function isRoomy(node: PlacedReport): boolean {
  return node.x1 - node.x0 >= ROOMY && node.y1 - node.y0 >= ROOMY;
}

/** Returns the names of all trees in bytes, `explicit` first. */
function byteTrees(data: ReportData): string[] {
  const names = new Set<string>();
  for (const { trees } of data.processes) {
    for (const root of trees) if (units(data, root) === Units.Bytes) names.add(rawName(data, root));
  }
  return [...names].sort((a, b) => Number(b === EXPLICIT) - Number(a === EXPLICIT));
}

function findTree(data: ReportData, process: ReportProcess, name: string): number {
  return process.trees.find((root) => rawName(data, root) === name && units(data, root) === Units.Bytes) ?? -1;
}

/** Makes labels unique: the view finds a box again by its label. */
function unique(boxes: ReportBox[]): ReportBox[] {
  const seen = new Map<string, number>();
  for (const box of boxes) {
    const count = (seen.get(box.label) ?? 0) + 1;
    seen.set(box.label, count);
    if (count > 1) box.label = `${box.label} #${count}`;
  }
  return boxes;
}

/** Returns the boxes in a box, the largest first. All boxes beyond `MOST` become one box. */
function fill(box: ReportBox): ReportBox[] {
  const boxes = (box.inside?.() ?? []).filter((inner) => inner.size > 0).sort((a, b) => b.size - a.size);
  if (boxes.length <= MOST) return boxes;
  const rest = boxes.slice(MOST);
  const label = `(${rest.length} more)`;
  return [
    ...boxes.slice(0, MOST),
    {
      label,
      name: label,
      process: boxes[0].process,
      size: rest.reduce((sum, inner) => sum + inner.size, 0),
      amount: rest.reduce<Amount>((sum, inner) => add(sum, inner.amount), 0),
      units: box.units,
      inside: null,
      isRest: true,
    },
  ];
}
