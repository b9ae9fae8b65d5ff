// Boxes as large as what they stand for: all processes by what is resident, as in Firefox, or by one of
// their trees; and in each what is below. A click goes in.

import { hierarchy, type HierarchyRectangularNode, treemap } from "d3-hierarchy";
import { add, type Amount, formatAmount, Units } from "../amount";
import { type Data, isLeaf, type Process, rawName, units } from "../data";
import { create } from "../elements";
import { showName, showText } from "../escape";
import type { Model } from "../model";
import type { View } from "../view";

/** How many boxes one level may have, and how many trees one may choose from; the rest is one. */
const MOST = 150;
/** A box whose children are drawn in it has at least this many pixels each way. */
const ROOMY = 60;
const LABEL = 16;
/** A smaller box has no border, which would make it larger than it is. */
const SMALL = 10;
const COLOURS = 6;
/** The choice that is no tree. A tree's name cannot be empty. */
const RESIDENT = "";

/** Something that has a box: all processes, one, or a node. */
interface Box {
  label: string;
  /** Area. */
  size: number;
  amount: Amount;
  units: Units;
  /** What is inside, when asked. */
  inside: (() => Box[]) | null;
  /** What is inside is no part of the amount, and not drawn in it. */
  isOther?: boolean;
  isRest?: boolean;
  children?: Box[];
}

export class TreemapView implements View {
  readonly id = "treemap";
  readonly title = "Treemap";
  readonly element = create("div", "treemap");
  private readonly trail = create("nav", "trail");
  private readonly boxes = create("div", "boxes");
  private readonly choice = create("select");
  /** The way from all processes to what is shown. */
  private path: string[] = [];

  constructor(private readonly model: Model) {
    this.trail.setAttribute("aria-label", "Where this is");
    this.choice.setAttribute("aria-label", "What the boxes stand for");
    this.choice.addEventListener("change", () => this.go([]));
    const bar = create("div", "bar");
    bar.append(this.choice, this.trail);
    this.element.append(bar, this.boxes);
    new ResizeObserver(() => this.update()).observe(this.boxes);
  }

  update() {
    const { width, height } = this.boxes.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    if (this.choice.length === 0) this.fillChoice();
    const way = this.walk();
    this.drawTrail(way);
    const shown = way[way.length - 1];
    const root = { ...shown, children: fill(shown) };
    for (const child of root.children) if (child.inside && !child.isOther) child.children = fill(child);
    const tree = hierarchy<Box>(root, (box) => box.children).sum((box) => (box.children?.length ? 0 : box.size));
    const laidOut = treemap<Box>()
      .size([width, height])
      .paddingInner(1)
      .paddingTop((node) => (node.depth === 1 ? LABEL : 0))
      .round(true)(tree);
    const elements: HTMLElement[] = [];
    laidOut.children?.forEach((node, index) => {
      const roomy = node.x1 - node.x0 >= ROOMY && node.y1 - node.y0 >= ROOMY;
      elements.push(this.draw(node, index, node.data.inside ? () => this.go([...this.path, node.data.label]) : null));
      if (!roomy) return;
      for (const inner of node.children ?? []) {
        const way = [...this.path, node.data.label, inner.data.label];
        elements.push(this.draw(inner, index, inner.data.inside ? () => this.go(way) : null));
      }
    });
    if (elements.length === 0) elements.push(create("p", "", "Nothing to show as boxes."));
    this.boxes.replaceChildren(...elements);
  }

  /** Once, when it is first seen: there may be very many. */
  private fillChoice() {
    const { data } = this.model;
    const names = byteTrees(data);
    const hasResident = data.processes.some((process) => process.resident !== "0");
    for (const name of hasResident ? [RESIDENT, ...names.slice(0, MOST)] : names.slice(0, MOST)) {
      const option = create("option", "", name === RESIDENT ? "resident" : showName(name));
      option.value = name;
      this.choice.append(option);
    }
    if (names.length <= MOST) return;
    const rest = create("option", "", `(${names.length - MOST} more)`);
    rest.disabled = true;
    this.choice.append(rest);
  }

  private go(path: string[]) {
    this.path = path;
    this.update();
  }

  /** What lies on the way, as far as it still exists. */
  private walk(): Box[] {
    const way = [this.all()];
    for (const label of this.path) {
      const next = way[way.length - 1].inside?.().find((box) => box.label === label);
      if (!next?.inside) break;
      way.push(next);
    }
    this.path = this.path.slice(0, way.length - 1);
    return way;
  }

  private drawTrail(way: Box[]) {
    const links = way.flatMap((box, depth) => {
      const button = create("button", "", box.label);
      button.type = "button";
      button.disabled = depth === way.length - 1;
      button.addEventListener("click", () => this.go(this.path.slice(0, depth)));
      return depth === 0 ? [button] : [document.createTextNode(" › "), button];
    });
    const shown = way[way.length - 1];
    this.trail.replaceChildren(...links, ` ${this.amountText(shown)}`);
  }

  private draw(node: HierarchyRectangularNode<Box>, colour: number, go: (() => void) | null): HTMLElement {
    const box = node.data;
    const element = create(go ? "button" : "div", "box");
    const { isDiff } = this.model.data;
    if (box.isRest) element.classList.add("rest");
    else if (isDiff) element.classList.add(box.amount < 0 ? "shrink" : "grow");
    else element.classList.add(`k${colour % COLOURS}`);
    if (node.depth > 1) element.classList.add("deep");
    if (Math.min(node.x1 - node.x0, node.y1 - node.y0) < SMALL) element.classList.add("small");
    element.style.left = `${node.x0}px`;
    element.style.top = `${node.y0}px`;
    element.style.width = `${node.x1 - node.x0}px`;
    element.style.height = `${node.y1 - node.y0}px`;
    const sign = isDiff && box.amount > 0 ? "+" : "";
    const text = `${box.label} ${sign}${this.amountText(box)}`;
    element.title = text.slice(0, 2000);
    if (node.x1 - node.x0 >= 24 && node.y1 - node.y0 >= 14) element.textContent = text.slice(0, 200);
    if (go) element.addEventListener("click", go);
    return element;
  }

  private amountText(box: Box): string {
    return formatAmount(box.amount, box.units, this.model.asked.verbose);
  }

  private all(): Box {
    const { data, forest } = this.model;
    const chosen = this.choice.value;
    const processes = data.processes.map((process): Box => {
      const isResident = chosen === RESIDENT;
      const root = isResident ? process.explicit : findTree(data, process, chosen);
      const tree = root >= 0 && forest.isLeft(root) ? this.node(root, root) : null;
      const amount = isResident ? BigInt(process.resident) : (tree?.amount ?? 0);
      return {
        label: showText(process.name),
        size: isResident ? Math.abs(Number(amount)) : (tree?.size ?? 0),
        amount,
        units: Units.Bytes,
        inside: tree?.inside ?? null,
        isOther: isResident,
      };
    });
    const amount = processes.reduce<Amount>((sum, box) => add(sum, box.amount), 0);
    return { label: "All processes", size: 1, amount, units: Units.Bytes, inside: () => unique(processes) };
  }

  private node(top: number, node: number): Box {
    const { forest } = this.model;
    const { data } = forest;
    const amount = forest.amount(node);
    const weight = Number(forest.weight(node));
    return {
      label: showName(forest.name(top, node)),
      size: data.isDiff ? Math.abs(weight) : Math.max(0, weight),
      amount,
      units: units(data, node),
      inside: isLeaf(data, node)
        ? null
        : () => {
            const { tops, nodes } = forest.children(node);
            return unique(nodes.map((end, i) => this.node(tops[i], end)));
          },
    };
  }
}

/** The names of all trees in bytes, `explicit` first. */
function byteTrees(data: Data): string[] {
  const names = new Set<string>();
  for (const { trees } of data.processes) {
    for (const root of trees) if (units(data, root) === Units.Bytes) names.add(rawName(data, root));
  }
  return [...names].sort((a, b) => Number(b === "explicit") - Number(a === "explicit"));
}

function findTree(data: Data, process: Process, name: string): number {
  return process.trees.find((root) => rawName(data, root) === name && units(data, root) === Units.Bytes) ?? -1;
}

/** Boxes are found again by their label. */
function unique(boxes: Box[]): Box[] {
  const seen = new Map<string, number>();
  for (const box of boxes) {
    const count = (seen.get(box.label) ?? 0) + 1;
    seen.set(box.label, count);
    if (count > 1) box.label = `${box.label} #${count}`;
  }
  return boxes;
}

/** What is inside a box and large enough to draw, the rest in one. */
function fill(box: Box): Box[] {
  const boxes = (box.inside?.() ?? []).filter((inner) => inner.size > 0).sort((a, b) => b.size - a.size);
  if (boxes.length <= MOST) return boxes;
  const rest = boxes.slice(MOST);
  const size = rest.reduce((sum, inner) => sum + inner.size, 0);
  const amount = rest.reduce<Amount>((sum, inner) => add(sum, inner.amount), 0);
  return [
    ...boxes.slice(0, MOST),
    { label: `(${rest.length} more)`, size, amount, units: box.units, inside: null, isRest: true },
  ];
}
