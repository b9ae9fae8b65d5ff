// Where an arrow key leads among rectangles that fill an area.

export interface Rectangle {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

export type Direction = "left" | "right" | "up" | "down";

/** How much more a step aside costs than a step ahead, and how little the distance of the centres does. */
const ASIDE = 3;
const CENTRE = 0.01;

/** The rectangle that lies nearest in a direction: directly ahead rather than aside. */
export function nearest<T extends Rectangle>(from: T, all: readonly T[], direction: Direction): T | undefined {
  const start = turned(from, direction);
  let best: T | undefined;
  let least = Infinity;
  for (const other of all) {
    const end = turned(other, direction);
    const ahead = end.x0 - start.x1;
    if (other === from || ahead < 0) continue;
    const aside = Math.max(0, end.y0 - start.y1, start.y0 - end.y1);
    const centres = Math.abs(start.y0 + start.y1 - end.y0 - end.y1) / 2;
    const cost = ahead + ASIDE * aside + CENTRE * centres;
    if (cost < least) [best, least] = [other, cost];
  }
  return best;
}

/** The rectangle as it lies when the direction is turned to the right. */
function turned({ x0, y0, x1, y1 }: Rectangle, direction: Direction): Rectangle {
  switch (direction) {
    case "right":
      return { x0, y0, x1, y1 };
    case "left":
      return { x0: -x1, y0, x1: -x0, y1 };
    case "down":
      return { x0: y0, y0: x0, x1: y1, y1: x1 };
    case "up":
      return { x0: -y1, y0: x0, x1: -y0, y1: x1 };
  }
}
