// Writes heap snapshots node by node, in Firefox's format (CoreDump.proto).
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const varint = (n) => (n < 128 ? [n] : [(n % 128) | 128, ...varint(Math.floor(n / 128))]);
const number = (field, n) => Buffer.from([...varint(field << 3), ...varint(n)]);
const bytes = (field, body) => Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(body.length)]), body]);
const message = (body) => Buffer.concat([Buffer.from(varint(body.length)), body]);
const utf16 = (text) => Buffer.from(text, "utf16le");
export const edge = (to, name) => bytes(5, Buffer.concat([number(1, to), bytes(2, utf16(name))]));
export const node = (id, { edges = [], size = 16, type, coarse = 3, name = null, stack = null }) =>
  message(
    Buffer.concat([
      number(1, id),
      bytes(2, utf16(type)),
      number(4, size),
      ...edges,
      ...(stack ? [bytes(6, stack)] : []),
      ...(name === null ? [] : [bytes(7, Buffer.from(name))]),
      number(9, coarse),
    ]),
  );
export const frame = (id, name) => bytes(1, Buffer.concat([number(1, id), number(3, 1), number(4, 2), bytes(5, utf16(name)), bytes(7, utf16(name)), number(9, 0), number(10, 0)]));

/** Writes a file of these nodes. The root is the first node. */
export function writeSnapshot(path, nodes) {
  writeFileSync(path, gzipSync(Buffer.concat([message(number(1, 1_700_000_000_000_000)), ...nodes])));
}
