// A list of rows of equal height. Only visible rows have elements.
//
// Browsers limit the height of an element: Firefox treats an element above 17.9 million pixels as empty, and Chromium
// stops at 33.5 million. So the scrolled element is never higher than MAX_HEIGHT. In longer lists, a position in the
// element maps to a position in the list in proportion. A step of the wheel or a key still moves by its own distance.
// The scroll bar is corrected when the scrolling stops.

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
  /** The position of the top of the view, in pixels of an element with all rows. */
  private top = 0;
  private lastScroll = 0;
  private settle = 0;

  /** The visible height; 0 until it is known. Reading it from the element would cost a layout after each change. */
  private view = 0;
  /** The visible elements, from the top. */
  private drawn: HTMLElement[] = [];

  /**
   * `render` returns the element of a row. It may change the differing parts of `old`, the element at this position,
   * and return it. The browser then styles, lays out and paints only these parts, and selected text stays selected.
   */
  constructor(private readonly render: (row: number, old?: HTMLElement) => HTMLElement) {
    this.element.tabIndex = 0;
    this.window.append(this.clip);
    this.element.append(this.window, this.spacer);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => {
      this.view = this.element.clientHeight;
      this.draw();
    }).observe(this.element);
  }

  private get height() {
    return (this.view ||= this.element.clientHeight);
  }

  /** The first visible row. */
  get first(): number {
    return Math.floor(this.top / ROW_HEIGHT);
  }

  /** The number of rows by which Page Up and Page Down move: one less than the number of visible rows. */
  get page(): number {
    return Math.max(1, Math.floor(this.height / ROW_HEIGHT) - 1);
  }

  /** Shows a list of `count` rows at the same position. */
  update(count: number) {
    // An element that was removed for a while has lost its scroll position. Reading the position before the change
    // costs no layout.
    const scroll = this.element.scrollTop;
    if (count !== this.count) {
      this.count = count;
      this.spacer.style.height = `${this.scrolledHeight()}px`;
    }
    const { list, bar } = this.reach();
    if (list === bar && this.top <= list && scroll === this.lastScroll && Math.abs(scroll - this.top) < 1) this.draw();
    else this.moveTo(this.top);
  }

  /** Moves a row to the top. */
  goTo(row: number) {
    this.moveTo(row * ROW_HEIGHT);
  }

  /** Moves by the smallest distance that makes a row visible. */
  reveal(row: number) {
    const place = row * ROW_HEIGHT;
    const view = this.height;
    if (place < this.top) this.moveTo(place);
    else if (place + 2 * ROW_HEIGHT > this.top + view) this.moveTo(place + 2 * ROW_HEIGHT - view);
  }

  /** Draws the visible rows. */
  draw() {
    const view = this.height;
    if (view === 0) return;
    const first = this.first;
    const last = Math.min(this.count, Math.ceil((this.top + view) / ROW_HEIGHT));
    const rows: HTMLElement[] = [];
    for (let row = first; row < last; row++) rows.push(this.render(row, this.drawn[row - first]));
    const height = `${view}px`;
    if (this.clip.style.height !== height) this.clip.style.height = height;
    if (rows.length !== this.drawn.length || rows.some((row, at) => row !== this.drawn[at])) this.clip.replaceChildren(...rows);
    this.drawn = rows;
    const margin = `${first * ROW_HEIGHT - this.top}px`;
    if (rows.length > 0 && rows[0].style.marginTop !== margin) rows[0].style.marginTop = margin;
  }

  private scrolledHeight() {
    return Math.min(this.count * ROW_HEIGHT, MAX_HEIGHT);
  }

  /** Returns the largest positions of the list and of the scrolled element. */
  private reach(): { list: number; bar: number } {
    const view = this.height;
    return {
      list: Math.max(0, this.count * ROW_HEIGHT - view),
      bar: Math.max(0, this.scrolledHeight() - view),
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
    } else if (Math.abs(step) <= 2 * this.height && scroll > 0 && scroll < bar) {
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
