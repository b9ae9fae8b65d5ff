// The time line above the views: live bytes and allocations over time, and the range that the views show.
//
// A drag selects a range, and a click selects one time. Two sliders do the same for the keyboard. Ranges snap to bounds
// of slices, because the figures are exact there.

import { formatAmount, formatBytes, Units } from "../text/amount";
import { create, setName, setText, words } from "./elements";
import type { ShownBlocks, Timeline } from "../data/timeline";

const SVG = "http://www.w3.org/2000/svg";
/** The width of the drawing. The browser scales it. */
const WIDTH = 1000;
const HEIGHT = 100;
/** The highest rate of allocation is drawn this high. */
const RATE_HEIGHT = 40;
/** A drag over fewer pixels is a click. */
const CLICK = 4;
/** A drag that starts within this many pixels of a slider moves the slider. */
const NEAR = 8;
/** The number of slices by which Page Up and Page Down move. */
const PAGE = 10;

const MODES: [ShownBlocks, string][] = [
  ["kept", "allocated in the range, alive at its end"],
  ["alive", "all alive at the end of the range"],
  ["allocated", "all allocated in the range"],
];

export interface TimeRange {
  from: number;
  to: number;
  shown: ShownBlocks;
}

export class TimeStrip {
  readonly element = create("section", "time");
  private readonly chart = create("div", "chart");
  private readonly sliders = [create("div", "slider"), create("div", "slider")];
  private readonly shades = [create("div", "shade"), create("div", "shade")];
  private readonly radios: HTMLInputElement[];
  private readonly sum = create("output", "sum");
  private readonly last: number;
  private readonly length: number;
  private range: TimeRange;

  constructor(
    private readonly timeline: Timeline,
    private readonly changed: (range: TimeRange) => void,
  ) {
    this.last = timeline.bounds.length - 1;
    this.length = Math.max(1, timeline.bounds[this.last]);
    this.range = { from: 0, to: timeline.startsAtPeak ? timeline.peak : this.last, shown: "alive" };
    setName(this.element, "Time");
    this.chart.append(this.draw(), ...this.shades, ...this.sliders);
    ["Start", "End"].forEach((name, index) => {
      const slider = this.sliders[index];
      slider.tabIndex = 0;
      slider.setAttribute("role", "slider");
      setName(slider, `${name} of the range`);
      slider.setAttribute("aria-valuemin", "0");
      slider.setAttribute("aria-valuemax", String(this.last));
      slider.addEventListener("keydown", (event) => this.pressed(event, index));
    });
    this.chart.addEventListener("pointerdown", (event) => this.down(event));
    this.radios = MODES.map(([shown]) => {
      const radio = create("input");
      radio.type = "radio";
      radio.name = "shown";
      radio.value = shown;
      radio.addEventListener("change", () => this.select({ ...this.range, shown }));
      return radio;
    });
    const modes = create("span", "modes");
    modes.setAttribute("role", "radiogroup");
    setName(modes, "Blocks of the range");
    MODES.forEach(([, text], index) => {
      const label = create("label");
      label.append(this.radios[index], words(` ${text}`));
      modes.append(label);
    });
    const bar = create("div", "bar");
    const jump = (name: string, range: () => TimeRange) => {
      const button = create("button", "", name);
      button.type = "button";
      button.id = `time-${name.toLowerCase().replace(" ", "-")}`;
      button.addEventListener("click", () => this.select(range()));
      return button;
    };
    bar.append(
      modes,
      jump("Peak", () => ({ from: 0, to: timeline.peak, shown: "alive" })),
      jump("End", () => ({ from: 0, to: this.last, shown: "alive" })),
      jump("Whole", () => ({ from: 0, to: this.last, shown: this.range.shown === "alive" ? "kept" : this.range.shown })),
    );
    this.element.append(this.chart, this.axis(), bar, this.sum);
    this.place();
  }

  /** Shows the range that an address selects. */
  set current(range: TimeRange) {
    const inside = (bound: number) => Math.max(0, Math.min(this.last, Math.floor(bound) || 0));
    const [from, to] = [inside(range.from), inside(range.to)].sort((a, b) => a - b);
    const shown = MODES.some(([mode]) => mode === range.shown) ? range.shown : "alive";
    this.select({ from, to, shown });
  }

  get current(): TimeRange {
    return this.range;
  }

  /** Shows the sum of the blocks that the views show. */
  showSum(bytes: number, blocks: number, verbose: boolean) {
    const amount = formatBytes(bytes, verbose);
    const count = `${formatAmount(blocks, Units.Count, true)} block${blocks === 1 ? "" : "s"}`;
    const [from, to] = [this.time(this.range.from), this.time(this.range.to)];
    const what = {
      kept: `allocated from ${from} to ${to} and alive at ${to}`,
      alive: `alive at ${to}`,
      allocated: `allocated from ${from} to ${to}`,
    }[this.range.shown];
    setText(this.sum, `${amount} in ${count} ${what}`);
  }

  /** Selects a range. Except for "alive", which shows one time, a range has at least one slice. */
  private select(range: TimeRange) {
    const to = Math.max(0, Math.min(range.to, this.last));
    const from = Math.max(0, Math.min(range.from, this.last));
    this.range = { ...range, from: Math.min(from, to), to: Math.max(from, to) };
    if (this.range.shown !== "alive" && this.range.from === this.range.to) {
      if (this.range.to < this.last) this.range.to++;
      else this.range.from--;
    }
    this.range.from = Math.max(0, this.range.from);
    this.place();
    this.changed(this.range);
  }

  private time(bound: number): string {
    return formatTime(this.timeline.bounds[bound], this.length);
  }

  private part(bound: number): number {
    return (100 * this.timeline.bounds[bound]) / this.length;
  }

  /** Moves the sliders and the shades. */
  private place() {
    const { from, to, shown } = this.range;
    const isState = shown === "alive";
    [from, to].forEach((bound, index) => {
      const slider = this.sliders[index];
      slider.style.left = `${this.part(bound)}%`;
      slider.setAttribute("aria-valuenow", String(bound));
      slider.setAttribute("aria-valuetext", this.time(bound));
    });
    this.sliders[0].hidden = isState;
    this.shades[0].style.left = "0";
    this.shades[0].style.width = isState ? "0" : `${this.part(from)}%`;
    this.shades[1].style.left = `${this.part(to)}%`;
    this.shades[1].style.width = `${100 - this.part(to)}%`;
    this.radios.forEach((radio) => (radio.checked = radio.value === shown));
  }

  /** Returns the bound that is nearest to a position. */
  private bound(clientX: number): number {
    const { left, width } = this.chart.getBoundingClientRect();
    const time = ((clientX - left) / Math.max(1, width)) * this.length;
    const { bounds } = this.timeline;
    let best = 0;
    for (let i = 1; i <= this.last; i++) if (Math.abs(bounds[i] - time) < Math.abs(bounds[best] - time)) best = i;
    return best;
  }

  private down(event: PointerEvent) {
    if (event.button !== 0) return;
    event.preventDefault();
    const start = event.clientX;
    const { from, to, shown } = this.range;
    const { left, width } = this.chart.getBoundingClientRect();
    const isNear = (bound: number) => Math.abs(left + (this.part(bound) / 100) * width - start) <= NEAR;
    const isState = shown === "alive";
    // The end of the range that stays while the other end moves; `null` if the drag starts a new range.
    const fixed = isState ? null : isNear(to) ? from : isNear(from) ? to : null;
    const anchor = fixed ?? this.bound(start);
    let moved = false;
    const move = (event: PointerEvent) => {
      moved ||= Math.abs(event.clientX - start) >= CLICK;
      if (!moved) return;
      const other = this.bound(event.clientX);
      this.select({ from: Math.min(anchor, other), to: Math.max(anchor, other), shown: isState ? "kept" : shown });
    };
    const up = () => {
      this.chart.removeEventListener("pointermove", move);
      this.chart.removeEventListener("pointerup", up);
      this.chart.removeEventListener("pointercancel", up);
      if (!moved) this.select({ ...this.range, from: 0, to: this.bound(start), shown: "alive" });
    };
    this.chart.setPointerCapture(event.pointerId);
    this.chart.addEventListener("pointermove", move);
    this.chart.addEventListener("pointerup", up);
    this.chart.addEventListener("pointercancel", up);
  }

  private pressed(event: KeyboardEvent, index: number) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { from, to, shown } = this.range;
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowDown: -1,
      ArrowRight: 1,
      ArrowUp: 1,
      PageDown: -PAGE,
      PageUp: PAGE,
      Home: -this.last,
      End: this.last,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    // The sliders must not cross.
    if (index === 0) this.select({ from: Math.min(from + step, to - 1), to, shown });
    else this.select({ from, to: Math.max(to + step, shown === "alive" ? 0 : from + 1), shown: shown });
  }

  private draw(): SVGElement {
    const { ends, highest, allocated } = this.timeline.steps;
    const x = (time: number) => ((WIDTH * time) / this.length).toFixed(2);
    const most = Math.max(1, ...highest);
    const rates = Array.from(allocated, (bytes, i) => (i > 0 && ends[i] > ends[i - 1] ? bytes / (ends[i] - ends[i - 1]) : 0));
    const mostRate = Math.max(...rates, Number.MIN_VALUE);
    const steps = (of: ArrayLike<number>, scale: number) => {
      const parts = [`M0 ${HEIGHT}`];
      for (let i = 1; i < ends.length; i++) {
        const y = (HEIGHT - of[i] * scale).toFixed(2);
        parts.push(`L${x(ends[i - 1])} ${y}L${x(ends[i])} ${y}`);
      }
      return `${parts.join("")}L${WIDTH} ${HEIGHT}Z`;
    };
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    setName(svg, "Live bytes and allocated bytes over the time");
    const shape = (className: string, d: string) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", className);
      path.setAttribute("d", d);
      path.setAttribute("vector-effect", "non-scaling-stroke");
      svg.append(path);
    };
    shape("live", steps(highest, (HEIGHT - 4) / most));
    shape("rate", steps(rates, RATE_HEIGHT / mostRate));
    const peak = x(this.timeline.bounds[this.timeline.peak]);
    shape("peak", `M${peak} 0V${HEIGHT}`);
    return svg;
  }

  private axis(): HTMLElement {
    const { ends, highest, allocated } = this.timeline.steps;
    const most = formatBytes(Math.max(0, ...highest), false);
    const fastest = allocated.reduce((most, bytes, i) => {
      return i > 0 && ends[i] > ends[i - 1] ? Math.max(most, (bytes / (ends[i] - ends[i - 1])) * 1e9) : most;
    }, 0);
    const rate = formatBytes(Math.round(fastest), false);
    const axis = create("div", "axis");
    axis.append(
      create("span", "", "0 s"),
      create("span", "key live", `live, at most ${most}`),
      create("span", "key rate", `allocated, at most ${rate} a second`),
      create("span", "key peak", `peak at ${this.time(this.timeline.peak)}`),
      create("span", "", this.time(this.last)),
    );
    return axis;
  }
}

/** Formats a time in the unit that suits the whole length. */
export function formatTime(nanoseconds: number, length: number): string {
  const [unit, name] = length >= 1e9 ? [1e9, "s"] : length >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
  return `${(nanoseconds / unit).toFixed(length / unit >= 1000 ? 1 : length / unit >= 10 ? 2 : 3)} ${name}`;
}
