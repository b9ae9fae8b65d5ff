// Numbers for display.

import { formatBytes, shareText } from "./amount";

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (number: number) => whole.format(number);

/** Formats bytes in the largest unit that gives at least 1. */
export const bytes = (number: number) => formatBytes(number, false);

/** Formats the share of `all` that `part` is, in percent. */
export const percent = (part: number, all: number) => (all === 0 ? "" : shareText(part, all));
