// The choice of how to group or to label nodes: a breakdown of the page, a breakdown of the user, or a breakdown that
// the reader writes.

import { create, setName, setTip } from "../widgets/elements";
import type { Display } from "./api";
import { choice, type MenuOption } from "../widgets/controls";

export const GROUPS: MenuOption[] = [
  ["type", "Type"],
  ["stack", "Call Stack"],
  ["objectClass", "Class"],
  ["internalType", "Internal Type"],
  ["coarseType", "Coarse Type"],
  ["filename", "File Name"],
];
/** The type of a node: the server's default label of nodes. */
const LABEL =
  '{"by":"coarseType","objects":{"by":"objectClass","then":{"by":"count","count":true,"bytes":true},"other":{"by":"count","count":true,"bytes":true}},"strings":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"scripts":{"by":"internalType","then":{"by":"filename","then":{"by":"count","count":true,"bytes":true},"noFilename":{"by":"count","count":true,"bytes":true}}},"other":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"domNode":{"by":"descriptiveType","then":{"by":"count","count":true,"bytes":true}}}';
export const LABELS: MenuOption[] = [
  ["", "Type"],
  [`{"by":"allocationStack","then":${LABEL},"noStack":${LABEL}}`, "Call Stack"],
];
/** The menu entry for a breakdown that the reader writes. */
const OWN = "own";

/**
 * Returns the menu and the field for a breakdown. `value` is the breakdown of the view. `invert` is whether the view's
 * tree is inverted: two of the user's displays may differ only in `invert`.
 */
export function breakdownMenu(
  title: string,
  known: MenuOption[],
  own: Record<string, Display>,
  [value, invert]: [string, boolean | null],
  set: (value: string, inverted: string) => void,
): HTMLElement[] {
  const ofUser = new Map(Object.entries(own ?? {}).map(([name, display]) => [`display:${name}`, display]));
  const same = [...ofUser].filter(([, { breakdown }]) => JSON.stringify(breakdown) === value);
  const chosen = same.find(([, { inverted }]) => invert === null || inverted === invert) ?? same[0];
  const all: MenuOption[] = [...known, ...[...ofUser].map(([name, { displayName, tooltip }]): MenuOption => [name, displayName, tooltip])];
  const isWritten = !chosen && !known.some(([name]) => name === value);
  const input = create("input", "breakdown");
  input.value = isWritten ? value : "";
  input.hidden = !isWritten;
  input.placeholder = '{"by":"internalType"} and Enter';
  input.spellcheck = false;
  setName(input, `${title}: breakdown as JSON`);
  input.addEventListener("change", () => input.value && set(input.value, "0"));
  const menu = choice(title, [...all, [OWN, "own …"]], isWritten ? OWN : (chosen?.[0] ?? value), (next) => {
    const display = ofUser.get(next);
    if (display) return set(JSON.stringify(display.breakdown), display.inverted ? "1" : "0");
    if (next !== OWN) return set(next, "");
    input.hidden = false;
    input.focus();
  });
  setTip(menu, chosen?.[1].tooltip ?? "");
  return [menu, input];
}
