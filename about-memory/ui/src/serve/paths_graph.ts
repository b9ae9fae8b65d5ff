// Paths as a graph: each node and each edge once, in columns by the distance from the root. The wheel with Ctrl zooms,
// and a drag moves the graph.

import { create, draw, setName } from "../widgets/elements";
import { showText } from "../text/escape";

const [WIDE, HIGH] = [290, 48];
const [BOX, TALL] = [170, 26];
/** The number of characters that a node and an edge show. Tooltips contain the whole names. */
const [LONGEST, LONGEST_EDGE] = [20, 18];

/** A node of a path, and the edge to the next node. */
export interface PathStep {
  node: number;
  name: string;
  edge: string | null;
}

interface GraphNode {
  id: number;
  name: string;
  column: number;
  row: number;
}

const shortText = (text: string, longest: number) => {
  const shown = showText(text.slice(0, longest + 1));
  return shown.length > longest ? `${shown.slice(0, longest - 1)}…` : shown;
};

const tooltip = (text: string) => draw("title", {}, text);

export function drawPathGraph(paths: PathStep[][], address: (node: number) => string): HTMLElement {
  const nodes = new Map<number, GraphNode>();
  const edges = new Map<string, { from: number; to: number; names: string[] }>();
  for (const path of paths) {
    path.forEach((step, column) => {
      const known = nodes.get(step.node);
      if (known) known.column = Math.max(known.column, column);
      else nodes.set(step.node, { id: step.node, name: step.name || "(root)", column, row: 0 });
      const next = path[column + 1];
      if (!next) return;
      const key = `${step.node} ${next.node}`;
      const edge = edges.get(key) ?? { from: step.node, to: next.node, names: [] };
      edges.set(key, edge);
      const name = step.edge ?? "(no name)";
      if (!edge.names.includes(name)) edge.names.push(name);
    });
  }
  const rows: number[] = [];
  for (const node of nodes.values()) node.row = rows[node.column] = (rows[node.column] ?? -1) + 1;
  // A column may be empty, because a node is in the column of its longest path.
  const [width, height] = [rows.length * WIDE, (1 + Math.max(...Array.from(rows, (row) => row ?? 0))) * HIGH];
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Retaining paths as a graph" });
  const place = (id: number) => {
    const { column, row } = nodes.get(id)!;
    return { x: column * WIDE + 4, y: row * HIGH + 14 };
  };
  for (const { from, to, names } of edges.values()) {
    const [a, b] = [place(from), place(to)];
    const [x, y, u, v] = [a.x + BOX, a.y + TALL / 2, b.x, b.y + TALL / 2];
    const bend = Math.max(20, (u - x) / 2);
    svg.append(draw("path", { class: "line", d: `M${x},${y}C${x + bend},${y} ${u - bend},${v} ${u},${v}` }));
    const text = draw("text", { class: "edge", x: (x + u) / 2, y: (y + v) / 2 - 4, "text-anchor": "middle" }, shortText(names.join(", "), LONGEST_EDGE));
    text.append(tooltip(names.join(", ")));
    svg.append(text);
  }
  const last = paths[0][paths[0].length - 1].node;
  for (const { id, name } of nodes.values()) {
    const { x, y } = place(id);
    const to = draw("a", { href: address(id), "aria-label": `${name} @ 0x${id.toString(16)}` });
    const text = draw("text", { x: x + 6, y: y + 17 }, shortText(name, LONGEST));
    to.append(tooltip(`${name} @ 0x${id.toString(16)}`), draw("rect", { x, y, width: BOX, height: TALL, rx: 4, class: id === last ? "target" : "node" }), text);
    svg.append(to);
  }
  return movable(svg, width, height);
}

/** Lets the reader zoom with Ctrl and the wheel, + and -, and move with a drag or the scroll bars. */
function movable(svg: SVGElement, width: number, height: number): HTMLElement {
  const around = create("div", "graph");
  around.tabIndex = 0;
  around.setAttribute("role", "region");
  setName(around, "Graph: + and - zoom, arrow keys scroll");
  let scale = 1;
  const zoom = (factor: number) => {
    scale = Math.max(0.2, Math.min(4, scale * factor));
    svg.setAttribute("width", String(width * scale));
    svg.setAttribute("height", String(height * scale));
  };
  around.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });
  around.addEventListener("keydown", (event) => {
    if (event.key === "+") zoom(1.25);
    if (event.key === "-") zoom(0.8);
  });
  around.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1) return;
    around.scrollLeft -= event.movementX;
    around.scrollTop -= event.movementY;
  });
  around.append(svg);
  return around;
}
