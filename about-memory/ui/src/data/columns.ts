// Reads the columns that html/columns.rs writes.

/** A column of numbers in groups of seven bits, the lowest first. */
export class NumberColumn {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get done(): boolean {
    return this.at >= this.bytes.length;
  }

  /** Returns the next number. It must be below 2^53. */
  next(): number {
    let byte = this.bytes[this.at++];
    let number = byte & 0x7f;
    let unit = 1;
    while (byte & 0x80) {
      byte = this.bytes[this.at++];
      unit *= 0x80;
      number += (byte & 0x7f) * unit;
    }
    return number;
  }

  /** Returns the next signed number as a float. It is exact if its magnitude is below 2^52. */
  nextSigned(): number {
    let byte = this.bytes[this.at++];
    const negative = (byte & 1) === 1;
    let number = (byte & 0x7f) >> 1;
    let unit = 0x40;
    while (byte & 0x80) {
      byte = this.bytes[this.at++];
      number += (byte & 0x7f) * unit;
      unit *= 0x80;
    }
    return negative ? -number - 1 : number;
  }

  /** Returns the next signed number of any size. */
  nextBig(): bigint {
    let number = 0n;
    let shift = 0n;
    let byte;
    do {
      byte = this.bytes[this.at++];
      number |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
    } while (byte & 0x80);
    return number & 1n ? -(number >> 1n) - 1n : number >> 1n;
  }
}

/** A column of texts. */
export class TextColumn {
  private readonly text: string;
  private readonly ends: Uint32Array;

  constructor(lengths: Uint8Array, bytes: Uint8Array, count: number) {
    // A byte order mark at the start is part of the text.
    this.text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    this.ends = new Uint32Array(count + 1);
    const numbers = new NumberColumn(lengths);
    let end = 0;
    for (let i = 1; i <= count; i++) this.ends[i] = end += numbers.next();
  }

  get(index: number): string {
    return this.text.slice(this.ends[index], this.ends[index + 1]);
  }
}
