// The flame graph of rows. In a change, each row counts with its bytes before or after, whichever are more. The width
// of a frame is the sum of the rows below it.

import { Frame } from "./flame";
import type { BlockKinds } from "./kinds";
import { framePlace, type RowAmounts, type Stacks } from "./stacks";

/** Returns the frames that have blocks or, in a change, had blocks before. */
export function stackFlame(stacks: Stacks, amounts: RowAmounts, estimated = false, top?: { name: string; caller: Frame }): Frame {
  const count = stacks.caller.length;
  const sum = () => new Float64Array(count);
  const [bytes, blocks, bytesBefore, blocksBefore, larger] = [sum(), sum(), sum(), sum(), sum()];
  const { before } = amounts;
  for (let row = 0; row < stacks.rows; row++) {
    const frame = stacks.frameOf[row];
    bytes[frame] += amounts.bytes[row];
    blocks[frame] += amounts.blocks[row];
    if (before) {
      bytesBefore[frame] += before.bytes[row];
      blocksBefore[frame] += before.blocks[row];
    }
    larger[frame] += Math.max(amounts.bytes[row], before?.bytes[row] ?? 0, 0);
  }
  // Callers are before their callees.
  for (let frame = count - 1; frame > 0; frame--) {
    const caller = stacks.caller[frame];
    for (const sums of [bytes, blocks, bytesBefore, blocksBefore, larger]) sums[caller] += sums[frame];
  }
  const called = Array.from({ length: count }, (): Frame[] => []);
  const frames: Frame[] = [];
  for (let i = 0; i < count; i++) {
    const caller = stacks.caller[i];
    const past = before && { bytes: bytesBefore[i], blocks: blocksBefore[i], larger: larger[i] };
    const name = i === 0 && top ? top.name : stacks.names.get(stacks.nameOf[i]);
    frames[i] = new Frame(name, frames[caller] ?? top?.caller ?? null, bytes[i], blocks[i], estimated, () => called[i], past, framePlace(stacks, i));
    if (caller >= 0 && larger[i] > 0) called[caller].push(frames[i]);
  }
  return frames[0];
}

/**
 * Returns the stacks below the reporters of their blocks, and the unreported stacks. A block of two reporters is below
 * both reporters.
 */
export function flameByReporter(stacks: Stacks, { list, estimated }: BlockKinds): Frame {
  const tops = list.filter(({ title, reporter }) => reporter !== null || title === "Unreported");
  const sum = (of: "bytes" | "blocks") => tops.reduce((all, { amounts }) => all + amounts[of].reduce((sum, one) => sum + one, 0), 0);
  const made = () =>
    tops.map(({ title, reporter, amounts }) => stackFlame(stacks, amounts, estimated, { name: reporter ?? `(${title.toLowerCase()})`, caller: root })).filter(({ size }) => size > 0);
  const root: Frame = new Frame("reporters", null, sum("bytes"), sum("blocks"), estimated, made);
  return root;
}
