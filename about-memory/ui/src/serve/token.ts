// The token of the server: from the address, from the tab that opened this one, or from the reader. It is in the
// session's storage, never in an address that stays.

import { create } from "../widgets/elements";

const KEY = "about-memory-token";
const TOKEN = /^[0-9a-f]{64}$/;

function storedToken(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

function store(token: string) {
  sessionStorage.setItem(KEY, token);
}

/**
 * Moves the token from the address to the storage, so that neither the history nor a copied link contains it. Returns
 * the stored token. The address may name a report to show.
 */
export function takeToken(): string {
  const [, token, report] = /^#token=([0-9a-f]{64})(?:&report=(\d+))?$/.exec(location.hash) ?? [];
  if (token) {
    store(token);
    history.replaceState(null, "", report ? `#/report/${report}` : "#/");
  }
  return storedToken();
}

/** Like `takeToken`. Also exchanges a code in the address for the token. */
export async function findToken(): Promise<string> {
  const [, code] = /^#code=([0-9a-f]{64})$/.exec(location.hash) ?? [];
  if (code) {
    history.replaceState(null, "", "#/");
    const response = await fetch(`/code/${code}`).catch(() => null);
    if (response?.ok) store(((await response.json()) as { token: string }).token);
  }
  return takeToken();
}

/** Forgets a token that the server has refused, so that a reload does not use it again. */
export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

/**
 * Lets a link that the reader opens in a new tab (Ctrl, Shift or the middle button) pass the token to its tab: a window
 * that a page opens gets a copy of the session's storage. The token must not go to all tabs of the origin. One of them
 * may show the page of another server that had the same port before, and its script can read everything that such a
 * page can read.
 */
export function shareWithOpened() {
  const open = (event: MouseEvent) => {
    const link = (event.target as Element).closest?.<HTMLAnchorElement>('a[href^="#"]');
    if (!link || !(event.button === 1 || (event.button === 0 && (event.ctrlKey || event.metaKey || event.shiftKey)))) return;
    event.preventDefault();
    window.open(link.href);
  };
  addEventListener("click", open);
  addEventListener("auxclick", open);
}

/** Returns a form for the address that `serve` printed, or for its token. */
export function tokenForm(done: () => void): HTMLElement {
  const form = create("form", "token");
  const label = create("label", "", "Address or token ");
  const input = create("input");
  input.type = "text";
  input.autocomplete = "off";
  input.spellcheck = false;
  label.append(input);
  const open = create("button", "primary", "Open");
  const wrong = create("p", "error");
  wrong.setAttribute("role", "alert");
  form.append(create("p", "", "This page needs the token of its server. Paste the address that about-memory serve printed, or only its token. A link that you open in a new tab with Ctrl passes the token by itself."), label, " ", open, wrong);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const token = input.value.trim().replace(/^.*#token=/, "").replace(/&report=\d+$/, "");
    if (!TOKEN.test(token)) {
      wrong.replaceChildren(create("span", "", "A token has 64 characters from 0 to 9 and from a to f."));
      return;
    }
    store(token);
    done();
  });
  return form;
}
