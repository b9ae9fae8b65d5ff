// The page that `about-memory serve` serves. It is a function of the server's state and of the address.

import { byId, create, setText, setTip, setTitle, words } from "../widgets/elements";
import { Api, isRefused, type Job, type ServerState } from "./api";
import { countRequest, settle } from "./arrivals";
import { follow } from "./events";
import { foldSide } from "./fold";
import { memoryPage } from "./memory";
import { JOB_TEXTS, type Page } from "./page";
import { processesPage } from "./processes";
import { reportPage } from "./report";
import { link, readRoute, type Route } from "./route";
import { seriesPage } from "./series";
import { Side } from "./side";
import { stacksPage } from "./stacks";
import { findToken, forgetToken, shareWithOpened, tokenForm } from "./token";

const api = new Api();
const main = byId("main");
const side = new Side(byId("side"), api, showStatus);
let state: ServerState = {
  seq: 0,
  displays: { census: {}, label: {}, "tree-map": {} },
  cache: 0,
  version: "",
  system: "",
  readOnly: true,
  anonymize: false,
  server: 0,
  snapshots: [],
  reports: [],
  stacks: [],
  types: [],
  typesOfProcesses: false,
};
let page: Page | null = null;
/** The address and the state of its snapshots, in the form that the page shows now. */
let shown = "";

function showStatus(text: string, isError: boolean) {
  const status = byId("status");
  setText(status, text);
  // The line has room only for the start of a long text.
  setTip(status, text);
  status.className = isError ? "error" : "";
}

/** Returns the snapshots of the address. */
function ownSnapshots() {
  const [kind, ...ids] = readRoute().parts;
  const needed =
    kind === "memory" ? ids.slice(0, 1) : kind === "diff" ? ids.slice(0, 2) : kind === "generations" ? ids : [];
  return needed.map((id) => state.snapshots.find((snapshot) => String(snapshot.id) === id));
}

/** Whether the page knows the reports and stacks in the address. */
function isKnown() {
  const { parts, query } = readRoute();
  const list = parts[0] === "report" ? state.reports : parts[0] === "stacks" ? state.stacks : null;
  const needed = [parts[1], query.get("against")].filter(Boolean);
  return !list || needed.every((needed) => list.some(({ id }) => String(id) === needed));
}

/** Returns everything that the choice of the page depends on. */
function key() {
  const own = ownSnapshots().map((snapshot) => snapshot?.state ?? "none");
  return JSON.stringify([location.hash, own, isKnown(), state.readOnly]);
}

/** Returns the title of an address, in the form of about:memory. */
function pageTitle({ parts: [kind, ...ids], query }: Route): string {
  const snapshot = (id: string) => state.snapshots.find((one) => String(one.id) === id)?.title ?? `snapshot ${id}`;
  const report = (id: string) => state.reports.find((one) => String(one.id) === id)?.title ?? `report ${id}`;
  const against = query.get("against");
  const of: Record<string, () => string> = {
    memory: () => snapshot(ids[0]),
    diff: () => `diff of ${snapshot(ids[0])} and ${snapshot(ids[1])}`,
    generations: () => ids.map(snapshot).join(", "),
    report: () => (against ? `diff of ${report(against)} and ${report(ids[0])}` : report(ids[0])),
    stacks: () => state.stacks.find((one) => String(one.id) === ids[0])?.title ?? "stacks",
    series: () => "all reports",
  };
  const title = kind === undefined ? undefined : of[kind]?.();
  return title === undefined ? "about:memory" : `about:memory (${title})`;
}

/** Makes the page of the address again if the address or its snapshots have changed. */
function show() {
  const route = readRoute();
  const [kind] = route.parts;
  const own = ownSnapshots();
  const now = key();
  if (now === shown) return page?.renew?.(state);
  shown = now;
  page?.close();
  page = null;
  showStatus("", false);
  setTitle(pageTitle(route));
  delete document.documentElement.dataset.rows;
  const isProcesses = kind === undefined;
  if (isProcesses) byId("to-processes").setAttribute("aria-current", "page");
  else byId("to-processes").removeAttribute("aria-current");
  const waiting = own.find((snapshot) => snapshot?.state !== "read");
  if (own.includes(undefined)) main.replaceChildren(create("p", "empty", "The server no longer has this snapshot. Choose another one."));
  else if (waiting) main.replaceChildren(create("p", "empty", waiting.error ?? "Reading the snapshot …"));
  else if (!isKnown()) main.replaceChildren(create("p", "empty", "The server no longer has this file or measurement. Choose another one on the left."));
  else if (kind === "memory" || kind === "diff" || kind === "generations") page = memoryPage(main, api, state, route, showStatus);
  else if (kind === "report") page = reportPage(main, api, state, route, showStatus);
  else if (kind === "stacks") page = stacksPage(main, api, state, route, showStatus);
  else if (kind === "series") page = seriesPage(main, api, state, route, showStatus);
  else if (isProcesses) page = processesPage(main, api, state, showStatus, refresh);
  else main.replaceChildren(create("p", "empty", "No page has this address. Choose one on the left."));
}

function showJobs(jobs: Job[]) {
  const parts = jobs.map((job) => {
    const part = create("span");
    const bar = create("progress");
    if (job.of > 0) {
      bar.max = job.of;
      bar.value = job.done;
    }
    const cancel = create("button", "", "Cancel");
    cancel.type = "button";
    cancel.addEventListener("click", () => void api.remove(`jobs/${job.id}`).catch(() => {}));
    part.append(words(`${JOB_TEXTS[job.kind] ?? job.kind} `), bar, " ", cancel, " ");
    return part;
  });
  byId("jobs").replaceChildren(...parts);
}

/** The number of the request whose answer is shown. */
let answered = 0;

/** Reads the server's state. If two requests run at once, the answer to the later request is shown. */
async function refresh() {
  const request = countRequest();
  const next = await api.get<ServerState>("state");
  if (request < answered) return;
  answered = request;
  state = next;
  settle(state.snapshots, request);
  side.draw(state);
  show();
  document.documentElement.dataset.state = "ready";
}

/** The subjects of events that change the lists of the page. */
const CHANGES = ["snapshot", "list"];

/** Follows the server's events forever. */
async function live() {
  for (;;) {
    try {
      await refresh();
      let changes = Promise.resolve();
      const take = (name: string, data: unknown) => {
        if (name === "jobs") showJobs(data as Job[]);
        else if (name === "reset" || CHANGES.includes((data as { subject: string }).subject)) {
          changes = changes.then(refresh).catch(() => {});
        }
      };
      await follow(api, state.server, () => state.seq, take, refresh);
      showStatus("The server has ended.", true);
    } catch (error) {
      showStatus(`The server does not answer: ${(error as Error).message}`, true);
      document.documentElement.dataset.state = "error";
      // The token of another server: the reader can paste the right one.
      if (isRefused(error)) {
        forgetToken();
        main.replaceChildren(tokenForm(() => location.reload()));
        // The token stays wrong, so another request is useless.
        return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

/** Ctrl with an arrow key shows the previous or next snapshot, if there is one. */
addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step || !(event.ctrlKey || event.metaKey)) return;
  const route = readRoute();
  // The number in the address of a report is not a snapshot's number.
  if (!["memory", "diff", "generations"].includes(route.parts[0])) return;
  const read = state.snapshots.filter((snapshot) => snapshot.state === "read");
  if (read.length === 0) return;
  event.preventDefault();
  const at = read.findIndex((snapshot) => String(snapshot.id) === route.parts[1]);
  const next = read[Math.max(0, Math.min(read.length - 1, at + step))];
  // At the last snapshot, the filter and the open rows do not change.
  if (route.parts[0] === "memory" && next === read[at]) return;
  const view = route.parts[0] === "memory" ? (route.parts[2] ?? "census") : "census";
  // The other snapshot may have the same groups, so a view of groups keeps its values. A view of nodes does not keep
  // its values, because the other snapshot has other nodes.
  const isOfGroups = ["census", "treemap", "classes"].includes(view);
  location.hash = link(["memory", next.id, view === "individuals" ? "census" : view], isOfGroups && route.parts[0] === "memory" ? Object.fromEntries(route.query) : {});
});
addEventListener("address-replaced", () => (shown = key()));
addEventListener("hashchange", () => {
  if (/^#(token|code)=/.test(location.hash)) location.reload();
  side.draw(state);
  // A measurement has added a report, or a dump has added stacks. The page waits for their titles.
  if (isKnown()) show();
  else {
    page?.close();
    page = null;
    shown = "";
    main.replaceChildren(create("p", "empty", "Loading …"));
  }
  if (["report", "stacks"].includes(readRoute().parts[0])) void refresh().catch((error: Error) => showStatus(error.message, true));
});

async function start() {
  api.token = await findToken();
  if (api.token) {
    shareWithOpened();
    return live();
  }
  document.documentElement.dataset.state = "error";
  showStatus("This page has no token.", true);
  main.replaceChildren(tokenForm(() => location.reload()));
}
foldSide();
void start();
