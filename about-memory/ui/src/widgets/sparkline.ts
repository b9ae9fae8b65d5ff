// The latest amounts of a process as a line. The largest amount has the full height.

import { setName } from "./elements";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 120;
const HEIGHT = 18;
/** The number of amounts to keep. */
const MOST = 60;

/** Adds an amount, and drops the oldest one that no line has room for. */
export function keepAmount(amounts: number[], amount: number) {
  amounts.push(amount);
  if (amounts.length > MOST) amounts.shift();
}

export class Sparkline {
  readonly element = document.createElementNS(SVG, "svg");
  private readonly line = document.createElementNS(SVG, "polyline");

  /** The line shows the contents of `amounts` at each `draw`. */
  constructor(
    private readonly amounts: number[],
    private readonly text: (amount: number) => string,
  ) {
    this.element.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.element.setAttribute("class", "sparkline");
    this.element.setAttribute("role", "img");
    this.element.append(this.line);
    this.draw();
  }

  draw() {
    const { amounts } = this;
    const most = Math.max(1, ...amounts);
    const place = (amount: number, at: number) => {
      const x = WIDTH - (amounts.length - 1 - at) * (WIDTH / (MOST - 1));
      return `${x.toFixed(1)},${(HEIGHT - 1 - (amount / most) * (HEIGHT - 2)).toFixed(1)}`;
    };
    this.element.dataset.amounts = String(amounts.length);
    this.line.setAttribute("points", amounts.map(place).join(" "));
    const first = amounts[0];
    const last = amounts[amounts.length - 1];
    const about = first === undefined ? "No amounts yet" : `From ${this.text(first)} to ${this.text(last)}, at most ${this.text(most)}`;
    setName(this.element, about);
  }
}
