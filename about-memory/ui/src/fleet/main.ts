// The page that `memory-fleet serve` serves. The address contains the question and its scope.

import { byId, create, setLines, setText, setTip, setTitle } from "../widgets/elements";
import { retry } from "../widgets/controls";
import { Api } from "../serve/api";
import { readRoute } from "../serve/route";
import { takeToken } from "../serve/token";
import { showDetails } from "./details";
import { type Answer, namedRow, rowsTable } from "./rows";
import { address, drawScope, type FleetState, questionOf, QUESTIONS, type Scope, scopeOf } from "./scope";

const token = takeToken();
const api = new Api();
api.token = token;
const answerPlace = byId("answer");
/** The minimum and the maximum width of a chart. */
const [NARROW, WIDE] = [320, 1100];
const NO_TOKEN = "This page needs the whole address that `memory-fleet serve` printed, with #token= at its end.";

let state: FleetState | null = null;
/** The requests of the shown address. */
let requests = new AbortController();

function showStatus(text: string, isError: boolean) {
  const status = byId("status");
  setText(status, text);
  setTip(status, text);
  status.className = isError ? "error" : "";
}

function drawQuestions(question: string, scope: Scope) {
  const links = QUESTIONS.map(([name, head, about]) => {
    const to = create("a", "", head);
    to.href = address(name, scope);
    setTip(to, about);
    if (name === question) to.setAttribute("aria-current", "page");
    return to;
  });
  const focused = document.activeElement?.textContent;
  const had = byId("questions").contains(document.activeElement);
  byId("questions").replaceChildren(...links);
  if (had) links.find((link) => link.textContent === focused)?.focus();
}

function drawAnswer(question: string, scope: Scope, answer: Answer, signal: AbortSignal) {
  const details = create("section");
  const width = Math.max(NARROW, Math.min(WIDE, answerPlace.clientWidth - 24));
  let own = new AbortController();
  signal.addEventListener("abort", () => own.abort());
  const show = async (row: number | null) => {
    own.abort();
    own = new AbortController();
    const mine = own.signal;
    const shown = row === null ? null : namedRow(answer, row);
    document.documentElement.dataset.details = "loading";
    try {
      await showDetails(details, api, { question, scope, row: shown, width }, (text) => showStatus(text, true), mine);
      document.documentElement.dataset.details = "ready";
    } catch (error) {
      if (mine.aborted) return;
      showStatus((error as Error).message, true);
      details.replaceChildren(retry(() => void show(row)));
    }
  };
  const parts: Node[] = [create("h2", "", answer.title)];
  if (answer.rows.length > 0) {
    const scrolls = create("div", "scrolls");
    scrolls.append(rowsTable(answer, 0, (row) => void show(row)));
    parts.push(scrolls);
  }
  for (const note of answer.notes) parts.push(create("p", "", note));
  if (answer.next.length > 0) {
    const commands = create("pre");
    setLines(commands, answer.next);
    // A narrow window scrolls the commands, also by keys.
    commands.tabIndex = 0;
    parts.push(create("h3", "", "Next, in a terminal"), commands);
  }
  answerPlace.replaceChildren(...parts, details);
  document.documentElement.dataset.rows = String(answer.rows.length);
  void show(answer.rows.length > 0 ? 0 : null);
}

/** Shows the question of the address. */
async function show() {
  requests.abort();
  requests = new AbortController();
  const { signal } = requests;
  const route = readRoute();
  const [question, scope] = [questionOf(route), scopeOf(route)];
  delete document.documentElement.dataset.rows;
  drawQuestions(question, scope);
  setTitle(`memory-fleet (${question})`);
  const head = QUESTIONS.find(([name]) => name === question);
  if (!head) return answerPlace.replaceChildren(create("p", "empty", "No question has this address. Choose one above."));
  try {
    state ??= await api.post<FleetState>("state", { from: "", to: "" });
    if (signal.aborted) return;
    drawScope(byId("scope"), scope, state, (to) => (location.hash = address(question, to)));
    showStatus(`${head[2]} …`, false);
    answerPlace.replaceChildren(create("p", "empty", "Asking …"));
    const answer = (await api.post("ask", { question, scope }, signal)) as Answer;
    if (signal.aborted) return;
    showStatus(state.folder, false);
    drawAnswer(question, scope, answer, signal);
    document.documentElement.dataset.state = "ready";
  } catch (error) {
    if (signal.aborted) return;
    document.documentElement.dataset.state = "error";
    const text = token ? (error as Error).message : NO_TOKEN;
    showStatus(text, true);
    answerPlace.replaceChildren(create("p", "empty", text), ...(token ? [retry(() => void show())] : []));
  }
}

byId("scope").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => {
  if (takeToken() !== token) location.reload();
  void show();
});
void show();
