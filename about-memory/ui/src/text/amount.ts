// Amounts, formatted by `Intl.NumberFormat("en-US")` as in Firefox.

/** A whole number, as a bigint if a float could lose digits. */
export type Amount = number | bigint;

export const enum Units {
  Bytes,
  Count,
  CountCumulative,
  Percentage,
}

/** A float represents every whole number up to this number exactly. */
const EXACT = 2 ** 53;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const decimals = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
const decimal = new Intl.NumberFormat("en-US", decimals);
const percent = new Intl.NumberFormat("en-US", { style: "percent", ...decimals });
const share = new Intl.NumberFormat("en-US", { style: "percent", minimumIntegerDigits: 2, ...decimals });

export function magnitude(amount: Amount): Amount {
  return amount < 0 ? -amount : amount;
}

export function add(a: Amount, b: Amount): Amount {
  return typeof a === "number" && typeof b === "number" ? a + b : BigInt(a) + BigInt(b);
}

/** Formats the bytes of blocks with their unit: bytes if `verbose`, otherwise the largest unit that gives at least 1. */
export function formatBytes(bytes: Amount, verbose: boolean): string {
  let [size, unit] = [Number(bytes), 0];
  // An amount that would round to 1,024.00 gets the next unit.
  while (!verbose && Math.abs(size) >= 1023.995 && unit + 1 < UNITS.length) [size, unit] = [size / 1024, unit + 1];
  return unit === 0 ? `${whole.format(bytes)} B` : `${decimal.format(size)} ${UNITS[unit]}`;
}

/** Formats a share in percent, without the leading zero of Firefox's text. */
export function shareText(amount: Amount, root: Amount): string {
  const percent = Number(root) === 0 ? 0 : (100 * Number(amount)) / Number(root);
  return amount != 0 && Math.abs(percent) < 0.005 ? "< 0.01%" : `${decimal.format(percent)}%`;
}

/**
 * Formats the amount of a report with its unit. An amount of memory is in bytes if `verbose`, otherwise in units of
 * 2^20 bytes, which about:memory calls MB.
 */
export function formatAmount(amount: Amount, units: Units, verbose: boolean): string {
  switch (units) {
    case Units.Bytes:
      return verbose ? `${whole.format(amount)} B` : `${scaled(amount, decimal, 1 << 20, 1n)} MB`;
    case Units.Percentage:
      return scaled(amount, percent, 10_000, 100n);
    default:
      return whole.format(amount);
  }
}

/** Formats the share of `root` that `amount` is, in percent. */
export function formatShare(amount: Amount, root: Amount): string {
  const ratio = Number(root) === 0 ? 1 : Number(amount) / Number(root);
  return ratio >= 0.99995 && ratio <= 1 ? "100.0%" : share.format(ratio);
}

/** Formats `amount / divisor` with two decimals. An amount that a float cannot represent is rounded exactly. */
function scaled(amount: Amount, format: Intl.NumberFormat, divisor: number, factor: bigint): string {
  const size = magnitude(amount);
  if (size <= EXACT) return format.format(Number(amount) / divisor);
  const by = BigInt(divisor);
  const hundredths = (BigInt(size) * 100n * factor + by / 2n) / by;
  const text = `${whole.format(hundredths / 100n)}.${String(hundredths % 100n).padStart(2, "0")}`;
  return (amount < 0 ? "-" : "") + text + (factor === 1n ? "" : "%");
}
