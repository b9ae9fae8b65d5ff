// Numbers for display.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const UNITS = ["KiB", "MiB", "GiB", "TiB"];

export const count = (number: number) => whole.format(number);

/** Bytes in the largest unit of 1024 that leaves at least one. */
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

/** The share of `part` in `all`, in percent. */
export function percent(part: number, all: number): string {
  return all === 0 ? "" : `${decimal.format((100 * part) / all)}%`;
}
