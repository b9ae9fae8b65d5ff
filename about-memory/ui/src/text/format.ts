// Numbers for display.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const UNITS = ["KiB", "MiB", "GiB", "TiB"];

export const count = (number: number) => whole.format(number);

/** Formats bytes in the largest unit that gives at least 1. */
export function bytes(number: number): string {
  let size = number;
  let unit = "B";
  for (const next of UNITS) {
    if (Math.abs(size) < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${unit === "B" ? whole.format(size) : decimal.format(size)} ${unit}`;
}

/** Formats the share of `all` that `part` is, in percent. */
export function percent(part: number, all: number): string {
  return all === 0 ? "" : `${decimal.format((100 * part) / all)}%`;
}
