// The memory of a process over the last minutes, as two lines with axes. The reader sees the amounts of a time under the
// pointer, and selects a range with a drag or with Shift and an arrow key.

import { create, draw, setName, setText } from "../widgets/elements";
import { bytes } from "../text/format";

/** The amounts of a process at a time, in milliseconds since 1970. */
export interface Sample {
  time: number;
  resident: number;
  heap: number | null;
}

/** A range between two samples, by index. */
export interface SampleRange {
  from: Sample;
  to: Sample;
}

/** The number of samples to keep: ten minutes. */
export const MOST_SAMPLES = 300;
/** The size of the drawing. The browser scales it. */
const [WIDTH, HEIGHT] = [1000, 100];
/** A drag over fewer pixels is a click. */
const CLICK = 4;
/** The events that end a drag. */
const ENDS = ["pointerup", "pointercancel"] as const;

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Returns a length of time as a text. */
export function lengthText(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export class LiveChart {
  readonly element = create("section", "live-chart");
  private readonly plot = create("div", "plot");
  private readonly drawing = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  private readonly shade = create("div", "shade");
  private readonly cursor = create("div", "cursor");
  private readonly most = create("span", "most");
  private readonly ends = create("p", "ends");
  private readonly about = create("output", "about");
  /** The ends of the range and the time under the pointer: times of samples, so they stay when samples are dropped. */
  private start: number | null = null;
  private end: number | null = null;
  private at: number | null = null;

  constructor(
    private readonly samples: Sample[],
    /** Called when the reader selects a range, or no range. */
    private readonly onRange: (range: SampleRange | null) => void,
  ) {
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "group");
    this.plot.append(this.drawing, this.shade, this.cursor, this.most);
    this.plot.addEventListener("pointermove", (event) => this.hover(event.clientX));
    this.plot.addEventListener("pointerleave", () => this.select(null, this.start, this.end));
    this.plot.addEventListener("pointerdown", (event) => this.down(event));
    this.plot.addEventListener("keydown", (event) => this.pressed(event));
    const legend = create("p", "legend");
    legend.append(create("span", "key resident", "resident"), create("span", "key heap", "heap"), this.about);
    this.element.append(legend, this.plot, this.ends);
    this.draw();
  }

  /** Shows the samples after a change. */
  draw() {
    const { samples } = this;
    const most = Math.max(1, ...samples.map(({ resident, heap }) => Math.max(resident, heap ?? 0)));
    const [first, last] = [samples[0]?.time ?? 0, samples[samples.length - 1]?.time ?? 0];
    const x = (time: number) => (last > first ? ((time - first) / (last - first)) * WIDTH : WIDTH);
    const y = (amount: number) => HEIGHT - (amount / most) * (HEIGHT - 6);
    const line = (name: string, amount: (sample: Sample) => number | null) => {
      const points = samples.flatMap((sample) => (amount(sample) === null ? [] : [`${x(sample.time).toFixed(1)},${y(amount(sample)!).toFixed(1)}`]));
      return draw("polyline", { class: name, points: points.join(" ") });
    };
    const grid = [0, 0.5].map((part) => draw("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(part * most), y2: y(part * most) }));
    this.drawing.replaceChildren(...grid, line("resident", ({ resident }) => resident), line("heap", ({ heap }) => heap));
    setText(this.most, bytes(most));
    this.ends.replaceChildren(create("span", "", samples.length > 0 ? clock.format(first) : ""), create("span", "", samples.length > 1 ? clock.format(last) : ""));
    const now = samples[samples.length - 1];
    setName(this.plot, now ? `Memory of the last ${lengthText(last - first)}: resident ${bytes(now.resident)}${now.heap === null ? "" : `, heap ${bytes(now.heap)}`}. Arrow keys move through the times, with Shift they select a range.` : "No amounts yet");
    this.place();
  }

  /** Places the cursor and the range, and shows their amounts. */
  private place() {
    const { samples } = this;
    const [first, last] = [samples[0]?.time ?? 0, samples[samples.length - 1]?.time ?? 0];
    const part = (time: number) => (last > first ? Math.max(0, Math.min(1, (time - first) / (last - first))) * 100 : 100);
    const range = this.range();
    this.shade.hidden = range === null;
    if (range) {
      this.shade.style.left = `${part(range.from.time)}%`;
      this.shade.style.width = `${part(range.to.time) - part(range.from.time)}%`;
    }
    const at = this.at === null ? undefined : this.nearest(this.at);
    this.cursor.hidden = at === undefined;
    if (at) this.cursor.style.left = `${part(at.time)}%`;
    if (range) {
      const change = (from: number, to: number) => `${to >= from ? "+" : "−"}${bytes(Math.abs(to - from))}`;
      const heap = range.from.heap === null || range.to.heap === null ? "" : `, heap ${change(range.from.heap, range.to.heap)}`;
      setText(this.about, `${lengthText(range.to.time - range.from.time)} from ${clock.format(range.from.time)}: resident ${change(range.from.resident, range.to.resident)}${heap}`);
    } else if (at) {
      setText(this.about, `${clock.format(at.time)}: resident ${bytes(at.resident)}${at.heap === null ? "" : `, heap ${bytes(at.heap)}`}`);
    } else {
      setText(this.about, samples.length > 1 ? "drag to select a range" : "");
    }
  }

  private range(): SampleRange | null {
    if (this.start === null || this.end === null || this.start === this.end) return null;
    const [from, to] = [this.nearest(Math.min(this.start, this.end)), this.nearest(Math.max(this.start, this.end))];
    return from && to && from !== to ? { from, to } : null;
  }

  private nearest(time: number): Sample | undefined {
    return this.samples.reduce<Sample | undefined>((one, other) => (one && Math.abs(one.time - time) <= Math.abs(other.time - time) ? one : other), undefined);
  }

  private select(at: number | null, start: number | null, end: number | null) {
    const before = JSON.stringify(this.range());
    [this.at, this.start, this.end] = [at, start, end];
    this.place();
    if (JSON.stringify(this.range()) !== before) this.onRange(this.range());
  }

  /** Returns the time of the sample that is nearest to a place on the screen. */
  private timeAt(clientX: number): number | null {
    const { left, width } = this.plot.getBoundingClientRect();
    const [first, last] = [this.samples[0], this.samples[this.samples.length - 1]];
    return first ? this.nearest(first.time + ((clientX - left) / width) * (last.time - first.time))!.time : null;
  }

  private hover(clientX: number) {
    this.select(this.timeAt(clientX), this.start, this.end);
  }

  private down(event: PointerEvent) {
    if (event.button !== 0) return;
    const [from, begin] = [event.clientX, this.timeAt(event.clientX)];
    this.plot.setPointerCapture(event.pointerId);
    const move = ({ clientX }: PointerEvent) => {
      const is = Math.abs(clientX - from) >= CLICK;
      this.select(this.timeAt(clientX), is ? begin : null, is ? this.timeAt(clientX) : null);
    };
    const up = (last: PointerEvent) => {
      if (last.type === "pointerup") move(last);
      this.plot.removeEventListener("pointermove", move);
      for (const end of ENDS) this.plot.removeEventListener(end, up);
    };
    this.plot.addEventListener("pointermove", move);
    for (const end of ENDS) this.plot.addEventListener(end, up);
  }

  private pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { samples } = this;
    const last = samples.length - 1;
    const now = this.at === null ? last : samples.indexOf(this.nearest(this.at)!);
    const steps: Record<string, number> = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: last };
    if (event.key === "Escape") this.select(null, null, null);
    else if (event.key in steps && last >= 0) {
      const to = samples[Math.max(0, Math.min(last, steps[event.key]))].time;
      if (event.shiftKey) this.select(to, this.start ?? samples[now].time, to);
      else this.select(to, null, null);
    } else return;
    event.preventDefault();
  }
}
