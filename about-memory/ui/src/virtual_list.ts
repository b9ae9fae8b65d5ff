// A list of equally high rows of which only those in sight are elements.
//
// No browser shows an element of any height: Firefox takes one above 17.9 million pixels for empty,
// Chromium stops at 33.5 million. So the scrolled element is never higher than MAX_HEIGHT, and then a
// place in it stands for a place in the list in proportion. A step of the wheel or a key still moves
// by as much as it says; the bar is put right once nothing moves.

import { create } from "./elements";

export const ROW_HEIGHT = 18;
const MAX_HEIGHT = 8_000_000;
const SETTLED = 150;

export class VirtualList {
  readonly element = create("div", "list");
  private readonly window = create("div", "window");
  private readonly clip = create("div", "clip");
  private readonly spacer = create("div", "spacer");
  private count = 0;
  /** The list's place at the top of the view, in pixels as if it were one high element. */
  private top = 0;
  private lastScroll = 0;
  private settle = 0;

  constructor(private readonly render: (row: number) => HTMLElement) {
    this.element.tabIndex = 0;
    this.window.append(this.clip);
    this.element.append(this.window, this.spacer);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** The first row in sight. */
  get first(): number {
    return Math.floor(this.top / ROW_HEIGHT);
  }

  /** How many rows are in sight. */
  get page(): number {
    return Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1);
  }

  /** Shows a list of so many rows, from where it was. */
  update(count: number) {
    this.count = count;
    this.spacer.style.height = `${this.height()}px`;
    this.moveTo(this.top);
  }

  /** Moves so that a row is at the top. */
  goTo(row: number) {
    this.moveTo(row * ROW_HEIGHT);
  }

  /** Moves as little as possible so that a row is in sight. */
  reveal(row: number) {
    const place = row * ROW_HEIGHT;
    const view = this.element.clientHeight;
    if (place < this.top) this.moveTo(place);
    else if (place + 2 * ROW_HEIGHT > this.top + view) this.moveTo(place + 2 * ROW_HEIGHT - view);
  }

  /** Draws what is in sight anew. */
  draw() {
    const view = this.element.clientHeight;
    if (view === 0) return;
    const first = this.first;
    const last = Math.min(this.count, Math.ceil((this.top + view) / ROW_HEIGHT));
    const rows: HTMLElement[] = [];
    for (let row = first; row < last; row++) rows.push(this.render(row));
    this.clip.style.height = `${view}px`;
    this.clip.replaceChildren(...rows);
    if (rows.length > 0) rows[0].style.marginTop = `${first * ROW_HEIGHT - this.top}px`;
  }

  private height() {
    return Math.min(this.count * ROW_HEIGHT, MAX_HEIGHT);
  }

  /** How far the list, and the element, can be moved. */
  private reach(): { list: number; bar: number } {
    const view = this.element.clientHeight;
    return {
      list: Math.max(0, this.count * ROW_HEIGHT - view),
      bar: Math.max(0, this.height() - view),
    };
  }

  private scrolled() {
    const { list, bar } = this.reach();
    const scroll = this.element.scrollTop;
    const step = scroll - this.lastScroll;
    if (step === 0) return this.draw();
    this.lastScroll = scroll;
    if (list === bar) {
      this.top = scroll;
    } else if (Math.abs(step) <= 2 * this.element.clientHeight && scroll > 0 && scroll < bar) {
      this.top = Math.min(list, Math.max(0, this.top + step));
      clearTimeout(this.settle);
      this.settle = window.setTimeout(() => this.moveTo(this.top), SETTLED);
    } else {
      this.top = (scroll / bar) * list;
    }
    this.draw();
  }

  private moveTo(top: number) {
    const { list, bar } = this.reach();
    this.top = Math.min(list, Math.max(0, top));
    const scroll = list === bar ? this.top : list === 0 ? 0 : (this.top / list) * bar;
    if (Math.abs(this.element.scrollTop - scroll) >= 1) this.element.scrollTop = scroll;
    this.lastScroll = this.element.scrollTop;
    this.draw();
  }
}
