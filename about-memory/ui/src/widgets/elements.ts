// Creates elements and gives them text. All text of the page passes through this module, so that no name in the text
// can deceive a reader. `npm run check` rejects text elsewhere. Text is never parsed as HTML.

import { showText } from "../text/escape";

/** The longest text of an element, in characters. A name may have megabytes. */
const LONGEST = 4_000;
/** The longest name in a table or a list whose rows are as high as their texts, in characters. */
const BRIEF = 200;

const shown = (text: string) => showText(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

/** Shortens a name to `BRIEF` characters. The tooltip of the row may show more. */
export function brief(name: string): string {
  return name.length > BRIEF ? `${name.slice(0, BRIEF)}…` : name;
}

export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) setText(element, text);
  return element;
}

export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Sets the text of an element. */
export function setText(element: Element, text: string) {
  element.textContent = shown(text);
}

/** Sets the text of an element that shows line breaks. */
export function setLines(element: Element, lines: string[]) {
  element.textContent = lines.map(shown).join("\n");
}

/** Returns a text node for the children of an element. */
export function words(text: string): Text {
  return document.createTextNode(shown(text));
}

/** Changes an existing text node. Does nothing if the text is the same. */
export function setWords(node: Text, text: string) {
  const next = shown(text);
  if (node.data !== next) node.data = next;
}

/** Returns lines as the text of a tooltip. */
export function tooltipText(...lines: string[]): string {
  return lines.map(shown).join("\n");
}

/** Sets the tooltip of an element. */
export function setTip(element: HTMLElement, ...lines: string[]) {
  element.title = tooltipText(...lines);
}

/** Sets the name of an element for screen readers. */
export function setName(element: Element, ...lines: string[]) {
  element.setAttribute("aria-label", tooltipText(...lines));
}

/** Sets the title of the page. */
export function setTitle(text: string) {
  document.title = shown(text);
}

const SVG = "http://www.w3.org/2000/svg";

/** Creates an SVG element. Names among the attributes are escaped like text. */
export function draw(name: string, attributes: Record<string, string | number> = {}, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    // The address of a link is not visible, and may be long.
    made.setAttribute(key, key === "href" || key === "d" ? String(value) : shown(String(value)));
  }
  if (text) setText(made, text);
  return made;
}
