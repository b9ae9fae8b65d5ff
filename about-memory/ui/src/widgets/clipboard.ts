// Copies text.

import { create } from "./elements";

/**
 * Copies a text. Returns whether the browser allowed it. Browsers may deny the clipboard to a page opened from a file;
 * `execCommand` also works in such a page.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = create("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
