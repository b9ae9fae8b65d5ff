// The token of the server: from the address, from another tab, or from the reader. It is in the session's storage,
// never in an address that stays.

import { create } from "../widgets/elements";

const KEY = "about-memory-token";
const CHANNEL = "about-memory-token";
/** Other tabs have this time to pass their token, in milliseconds. */
const PATIENCE = 400;
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

/** Like `takeToken`. Also exchanges a code in the address for the token, and asks the other tabs of this origin. */
export async function findToken(): Promise<string> {
  const [, code] = /^#code=([0-9a-f]{64})$/.exec(location.hash) ?? [];
  if (code) {
    history.replaceState(null, "", "#/");
    const response = await fetch(`/code/${code}`).catch(() => null);
    if (response?.ok) store(((await response.json()) as { token: string }).token);
  }
  return takeToken() || (await tokenOfOtherTab());
}

/** Asks the other tabs of this origin for their token. */
function tokenOfOtherTab(): Promise<string> {
  return new Promise((found) => {
    const channel = new BroadcastChannel(CHANNEL);
    const end = (token: string) => {
      channel.close();
      if (token) store(token);
      found(token);
    };
    channel.addEventListener("message", ({ data }) => {
      const { token } = data as { token?: string };
      if (token && TOKEN.test(token)) end(token);
    });
    channel.postMessage({ wanted: true });
    setTimeout(() => end(storedToken()), PATIENCE);
  });
}

/** Passes the token to other tabs of this origin that ask for it. */
export function shareToken(token: string) {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }) => {
    if ((data as { wanted?: boolean }).wanted) channel.postMessage({ token });
  });
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
  form.append(create("p", "", "This page needs the token of its server. Paste the address that about-memory serve printed, or only its token. A tab of the same address that is open passes the token by itself."), label, " ", open, wrong);
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
