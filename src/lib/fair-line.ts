/**
 * A queue that is fair to those who wait in it. Everything has a path, such as account and owner: time is shared equally among the
 * first parts of the paths, then among the second ones below each, and so on; within one path it is first come, first
 * served. What counts is the time that work took, not how many pieces it was (start-time fair queueing, P. Goyal et al.,
 * SIGCOMM 1996). Synchronous; time comes in with the calls.
 */
export interface FairLine<T> {
  push(path: readonly string[], item: T): void;
  /**
   * The item whose turn it is, which stays; undefined when none waits. `accept`: passes over paths by their first part.
   */
  peek(accept?: (first: string) => boolean): T | undefined;
  /** Takes the item of `peek`, which begins now. */
  shift(accept?: (first: string) => boolean): T | undefined;
  /** Takes a waiting item out; false where it does not wait. */
  remove(path: readonly string[], item: T): boolean;
  /** Charges a path with the time that a piece of its work took. */
  charge(path: readonly string[], costMs: number): void;
  waiting(): number;
  /** Items that wait below a path. */
  waitingAt(path: readonly string[]): number;
}

interface Node<T> {
  /** Its name among those below the one above. */
  readonly part: string;
  /** Time that was used, in milliseconds; of one that used none lately, what those had used that waited then. */
  usedMs: number;
  /** Items that wait here and below. */
  waiting: number;
  readonly items: T[];
  readonly below: Map<string, Node<T>>;
  /** What the one that was served last had used: who comes anew begins here, and has no claim for the time before. */
  floorMs: number;
}

/** Paths that are remembered; those that used least are forgotten first, which costs them nothing. */
const NODES_MAX = 10_000;

export function openFairLine<T>(): FairLine<T> {
  const root = openNode<T>("", 0);

  const walk = (path: readonly string[]): Node<T>[] => {
    const nodes = [root];
    let node = root;
    for (const part of path) {
      let next = node.below.get(part);
      if (next === undefined) {
        if (node.below.size >= NODES_MAX) forget(node);
        next = openNode<T>(part, node.floorMs);
        node.below.set(part, next);
      }
      nodes.push(next);
      node = next;
    }
    return nodes;
  };
  const find = (path: readonly string[]): Node<T> | undefined => {
    let node: Node<T> | undefined = root;
    for (const part of path) node = node?.below.get(part);
    return node;
  };

  /** The nodes from the root to the one whose item is next. */
  const turn = (accept: (first: string) => boolean = () => true): Node<T>[] => {
    const nodes = [root];
    let node = root;
    while (node.items.length === 0) {
      let least: Node<T> | undefined;
      for (const next of node.below.values())
        if (
          next.waiting > 0 &&
          (least === undefined || next.usedMs < least.usedMs) &&
          (node !== root || accept(next.part))
        )
          least = next;
      if (least === undefined) return [];
      nodes.push(least);
      node = least;
    }
    return nodes;
  };

  return {
    push: (path, item) => {
      const nodes = walk(path);
      for (const [at, node] of nodes.entries()) {
        const above = nodes[at - 1];
        if (node.waiting === 0 && above !== undefined) node.usedMs = Math.max(node.usedMs, above.floorMs);
        node.waiting += 1;
      }
      nodes.at(-1)?.items.push(item);
    },
    peek: (accept) => turn(accept).at(-1)?.items[0],
    shift: (accept) => {
      const nodes = turn(accept);
      for (const [at, node] of nodes.entries()) {
        node.waiting -= 1;
        const next = nodes[at + 1];
        if (next === undefined) continue;
        node.floorMs = Math.max(node.floorMs, next.usedMs);
        // Behind those that used as much.
        node.below.delete(next.part);
        node.below.set(next.part, next);
      }
      return nodes.at(-1)?.items.shift();
    },
    remove: (path, item) => {
      const at = find(path)?.items.indexOf(item) ?? -1;
      if (at === -1) return false;
      const nodes = walk(path);
      nodes.at(-1)?.items.splice(at, 1);
      for (const node of nodes) node.waiting -= 1;
      return true;
    },
    charge: (path, costMs) => {
      for (const node of walk(path)) node.usedMs += costMs;
    },
    waiting: () => root.waiting,
    waitingAt: (path) => find(path)?.waiting ?? 0,
  };
}

function openNode<T>(part: string, usedMs: number): Node<T> {
  return { part, usedMs, waiting: 0, items: [], below: new Map(), floorMs: 0 };
}

/** Forgets those whose use the others have reached, else the half that used least; none that waits. */
function forget<T>(node: Node<T>): void {
  const idle = [...node.below].filter(([, { waiting }]) => waiting === 0);
  idle.sort(([, a], [, b]) => a.usedMs - b.usedMs);
  for (const [at, [part, { usedMs }]] of idle.entries())
    if (usedMs <= node.floorMs || at < idle.length / 2) node.below.delete(part);
}
