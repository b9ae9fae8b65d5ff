// Escapes the characters of a name that could deceive a reader. (The page never parses a name as HTML.)

/** Control characters, line separators, marks of text direction, and zero-width characters. */
const DECEPTIVE =
  /[\p{Cc}\u{61c}\u{ad}\u{180e}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{fff9}-\u{fffb}\u{e0000}-\u{e007f}]/gu;

const escaped = (character: string) => `\\u{${character.codePointAt(0)!.toString(16)}}`;

/** Escapes foreign text. */
export function showText(text: string): string {
  return text.replace(DECEPTIVE, escaped);
}

/** Escapes a name of a report. A `\` becomes `/`, because it replaces a `/` inside a name. */
export function showName(name: string): string {
  return showText(name.replaceAll("\\", "/"));
}
