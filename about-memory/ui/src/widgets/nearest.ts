// Finds the target of an arrow key among rectangles that fill an area.

export interface Rectangle {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

export type Direction = "left" | "right" | "up" | "down";

/**
 * The weights of distances: a step aside costs more than a step ahead, and the distance of the centres costs little.
 */
const ASIDE = 3;
const CENTRE = 0.01;

/** Returns the nearest rectangle in a direction. A rectangle directly ahead is preferred to a rectangle aside. */
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

/** Returns the rectangle after a rotation that turns the direction to the right. */
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
