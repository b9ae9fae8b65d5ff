// Names as they are shown. They go into the page as text only; this is about deceiving the reader.

/** Control characters, line separators, text direction, and what has no width. */
const DECEPTIVE =
  /[\p{Cc}\u{61c}\u{ad}\u{180e}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{fff9}-\u{fffb}\u{e0000}-\u{e007f}]/gu;

const escaped = (character: string) => `\\u{${character.codePointAt(0)!.toString(16)}}`;

/** Foreign text. */
export function showText(text: string): string {
  return text.replace(DECEPTIVE, escaped);
}

/** A name of a report, in which `\` stands for `/`. */
export function showName(name: string): string {
  return showText(name.replaceAll("\\", "/"));
}
