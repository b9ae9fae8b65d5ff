// What a reader should know about a process first: its memory, its largest parts, its last minutes, and what to do.

import { create, setText, setTip, words } from "../widgets/elements";
import { button } from "../widgets/controls";
import { bytes, percent } from "../text/format";
import type { ServerState } from "./api";
import { LiveChart, lengthText, type Sample, type SampleRange } from "./live_chart";
import type { ListedProcess } from "./listed_process";
import { link } from "./route";

/** Unreported memory from this share on is worth a sentence. */
const MUCH = 0.2;
/** A limit is near from this share on. */
const NEAR = 0.8;

export interface CardActions {
  /** Takes the stacks of the process; `null` if it cannot. */
  stacks: (() => void) | null;
  /** Records the process for a time in milliseconds; `null` if it cannot. */
  record: ((milliseconds: number) => void) | null;
}

export class ProcessCard {
  readonly element = create("div", "card");
  private readonly figures = create("dl", "figures");
  private readonly parts = create("div", "parts");
  private readonly advice = create("p", "advice");
  private readonly ofRange = create("p", "of-range");
  private readonly chart: LiveChart;
  private shown = "";

  constructor(
    private process: ListedProcess,
    samples: Sample[],
    private state: ServerState,
    private readonly actions: CardActions,
  ) {
    this.chart = new LiveChart(samples, (range) => this.drawRange(range));
    const beside = create("div", "beside");
    beside.append(this.parts, this.advice);
    this.element.append(this.figures, this.chart.element, this.ofRange, beside);
    this.update(process, state);
  }

  update(process: ListedProcess, state: ServerState) {
    [this.process, this.state] = [process, state];
    this.chart.draw();
    const { pid, resident, heap, unclassified, limit, largest, explicit, report } = process;
    const now = JSON.stringify([pid, resident, heap, unclassified, limit, largest, explicit, report]);
    // Equal facts keep their elements, so that no link moves under the pointer.
    if (now === this.shown) return;
    this.shown = now;
    const figure = (title: string, text: string, about = "") => {
      const part = create("div");
      const value = create("dd", "", text);
      if (about) setTip(value, about);
      part.append(create("dt", "", title), value);
      return part;
    };
    this.figures.replaceChildren(
      figure("Resident", resident == null ? "?" : bytes(resident)),
      figure("Heap", heap == null ? "?" : bytes(heap)),
      figure("Unclassified", unclassified ? `${percent(...unclassified)}` : "not measured", unclassified ? `${bytes(unclassified[0])} of ${bytes(unclassified[1])}` : "Measure the process to see its unreported memory"),
      ...(limit == null ? [] : [figure("Limit", `${bytes(limit)}${resident == null ? "" : `, ${percent(resident, limit)} resident`}`, "The limit of the process's control group. Other processes of the group, the page cache and the kernel's memory count, too")]),
    );
    this.drawParts();
    setText(this.advice, this.sentence());
  }

  private drawParts() {
    const { largest, explicit, report } = this.process;
    if (!largest || !explicit) return this.parts.replaceChildren();
    const list = create("ol");
    for (const [path, amount] of largest) {
      const item = create("li");
      const to = create("a", "", path);
      to.href = link(["report", report!], { filter: path.split("/").pop()! });
      const bar = create("span", "bar");
      const part = create("span", "part");
      part.style.width = `${Math.max(0, Math.min(100, (100 * amount) / explicit)).toFixed(1)}%`;
      bar.append(part);
      item.append(create("span", "cell", bytes(amount)), create("span", "cell share", percent(amount, explicit)), to, bar);
      list.append(item);
    }
    this.parts.replaceChildren(create("h2", "", "Largest parts"), list);
  }

  /** Returns what the reader should do next, in a sentence. */
  private sentence(): string {
    const { largest, explicit, unclassified, limit, resident } = this.process;
    if (limit && resident && resident > limit * NEAR) return `The resident memory is ${percent(resident, limit)} of the limit of the process's control group: free caches with Minimize, or raise the limit.`;
    if (!largest || !explicit) return "Measure the process to see what holds its memory.";
    if (unclassified && unclassified[0] > unclassified[1] * MUCH) {
      const how = this.actions.stacks ? "take its stacks to see the code that allocated it" : "start the program with about-memory run --listen to see the code that allocated it";
      return `No reporter covers ${percent(...unclassified)} of the memory: ${how}.`;
    }
    const [path, amount] = largest[0] ?? ["", 0];
    return `${path} holds ${percent(amount, explicit)}: open the report to see its parts, and measure again later to see what grows.`;
  }

  /** Draws what the reader can do with a range. */
  private drawRange(range: SampleRange | null) {
    if (!range) return this.ofRange.replaceChildren();
    const [from, to] = [range.from.time, range.to.time];
    const inside = this.state.reports.filter(({ pids, time }) => pids.length === 1 && pids[0] === this.process.pid && time !== null && time >= from - 1000 && time <= to + 1000);
    const compare = button("Compare the measurements", () => {
      location.hash = link(["report", inside[inside.length - 1].id], { against: String(inside[0].id) });
    });
    compare.disabled = inside.length < 2;
    const parts: Node[] = [compare];
    if (compare.disabled) parts.push(words(" needs two measurements in the range "));
    const { record } = this.actions;
    if (record) parts.push(button(`Record the next ${lengthText(to - from)}`, () => record(to - from), "Records each allocation from now on, for as long as the range"));
    this.ofRange.replaceChildren(...parts);
  }
}
