// The rows of an answer as a table. Arrow keys move between rows, and Enter or a click selects a row.

import { brief, create, setTip } from "../widgets/elements";
import { bytes, count } from "../text/format";

export type Cell = string | number | null;

export interface Answer {
  title: string;
  columns: { name: string; unit: "bytes" | "share" | "number" | "text" }[];
  rows: Cell[][];
  notes: string[];
  next: string[];
}

const decimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** A row as an object of its columns. */
export type NamedRow = Record<string, Cell>;

export function namedRow({ columns, rows }: Answer, at: number): NamedRow {
  return Object.fromEntries(columns.map(({ name }, place) => [name, rows[at][place]]));
}

function cellText(cell: Cell, unit: string, name: string): string {
  if (cell === null) return "";
  if (typeof cell === "string") return cell;
  if (unit === "bytes") return bytes(cell);
  if (unit === "share") return `${decimal.format(100 * cell)}%`;
  // A process id is a name.
  if (name === "pid") return String(cell);
  return Number.isInteger(cell) ? count(cell) : decimal.format(cell);
}

/** Returns the table. `select` is called with the number of a row. */
export function rowsTable(answer: Answer, selected: number, select: (row: number) => void): HTMLElement {
  const table = create("table", "processes rows");
  table.setAttribute("role", "grid");
  const head = create("tr");
  for (const { name, unit } of answer.columns) {
    const cell = create("th", unit === "text" ? "" : "number", name.replaceAll("_", " "));
    cell.scope = "col";
    head.append(cell);
  }
  const body = create("tbody");
  const lines = answer.rows.map((row, at) => {
    const line = create("tr");
    line.tabIndex = at === selected ? 0 : -1;
    line.setAttribute("aria-selected", String(at === selected));
    row.forEach((cell, place) => {
      const { unit, name } = answer.columns[place];
      const text = cellText(cell, unit, name);
      const made = create("td", unit === "text" ? "name" : "number", brief(text));
      setTip(made, unit === "bytes" && typeof cell === "number" ? `${count(Math.round(cell))} B` : text);
      line.append(made);
    });
    line.addEventListener("click", () => choose(at));
    body.append(line);
    return line;
  });
  const choose = (at: number) => {
    for (const line of lines) {
      line.tabIndex = -1;
      line.setAttribute("aria-selected", "false");
    }
    lines[at].tabIndex = 0;
    lines[at].setAttribute("aria-selected", "true");
    select(at);
  };
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = lines.indexOf(document.activeElement as HTMLTableRowElement);
    if (at < 0) return;
    const last = lines.length - 1;
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (to !== undefined) lines[to].focus();
    else if (event.key === "Enter" || event.key === " ") choose(at);
    else return;
    event.preventDefault();
  });
  const heads = create("thead");
  heads.append(head);
  table.append(heads, body);
  return table;
}
