/**
 * A fair queue. Each item has a path, such as account and owner. Time is shared equally among the first parts of the
 * paths, then among the second parts below each, and so on. Items of one path leave by rank, the highest first, but every
 * fourth is one of the lowest, so that none starves; equals leave first in, first out. Shares count the time that work took,
 * not its items (start-time fair queueing, P. Goyal et al., SIGCOMM 1996). Synchronous; time comes in with the calls.
 */
export interface FairLine<T> {
  /** Default of `rank`: 0. */
  push(path: readonly string[], item: T, rank?: number): void;
  /**
   * Returns the next item without removing it; undefined if none waits. `accept` filters paths by their first part.
   */
  peek(accept?: (first: string) => boolean): T | undefined;
  /** Removes and returns the item of `peek`. */
  shift(accept?: (first: string) => boolean): T | undefined;
  /** Removes a waiting item; false if it does not wait. */
  remove(path: readonly string[], item: T): boolean;
  /** Charges a path with the time that one of its items took. */
  charge(path: readonly string[], costMs: number): void;
  waiting(): number;
  /** Number of items that wait at or below a path. */
  waitingAt(path: readonly string[]): number;
}

interface Node<T> {
  /** Part of the path that leads here. */
  readonly part: string;
  /** Virtual time in milliseconds: time used, raised to the parent's `floorMs` when items arrive after an idle period. */
  usedMs: number;
  /** Items that wait at or below this node. */
  waiting: number;
  /** By rank, the highest first; equals in the order in which they came. */
  readonly items: { readonly item: T; readonly rank: number }[];
  /** Items that left this node. */
  served: number;
  readonly below: Map<string, Node<T>>;
  /** `usedMs` of the child served last. A new child starts here, so it has no claim on earlier time. */
  floorMs: number;
}

/** Children remembered per node. Those that used least are evicted first, at no cost to them. */
const NODES_MAX = 10_000;

/** Of so many items of one path, one is of the lowest rank. */
const LOWEST_EVERY = 4;

export function openFairLine<T>(): FairLine<T> {
  const root = openNode<T>("", 0);

  /** Returns the nodes from the root to the one that holds the next item. */
  const nextPath = (accept: (first: string) => boolean = () => true): Node<T>[] => {
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
    push: (path, item, rank = 0) => {
      const nodes = walk(root, path);
      for (const [at, node] of nodes.entries()) {
        const above = nodes[at - 1];
        if (node.waiting === 0 && above !== undefined) node.usedMs = Math.max(node.usedMs, above.floorMs);
        node.waiting += 1;
      }
      const items = nodes.at(-1)?.items ?? [];
      items.splice(items.findLastIndex((other) => other.rank >= rank) + 1, 0, { item, rank });
    },
    peek: (accept) => {
      const node = nextPath(accept).at(-1);
      return node?.items[nextAt(node)]?.item;
    },
    shift: (accept) => {
      const nodes = nextPath(accept);
      for (const [at, node] of nodes.entries()) {
        node.waiting -= 1;
        const next = nodes[at + 1];
        if (next === undefined) continue;
        node.floorMs = Math.max(node.floorMs, next.usedMs);
        // Reinserted behind siblings that used the same time.
        node.below.delete(next.part);
        node.below.set(next.part, next);
      }
      const node = nodes.at(-1);
      const [next] = node?.items.splice(nextAt(node), 1) ?? [];
      if (node !== undefined) node.served += 1;
      return next?.item;
    },
    remove: (path, item) => {
      const at = find(root, path)?.items.findIndex((each) => each.item === item) ?? -1;
      if (at === -1) return false;
      const nodes = walk(root, path);
      nodes.at(-1)?.items.splice(at, 1);
      for (const node of nodes) node.waiting -= 1;
      return true;
    },
    charge: (path, costMs) => {
      for (const node of walk(root, path)) node.usedMs += costMs;
    },
    waiting: () => root.waiting,
    waitingAt: (path) => find(root, path)?.waiting ?? 0,
  };
}

/** Returns where the next item of a node is. */
function nextAt<T>({ items, served }: Node<T>): number {
  if (served % LOWEST_EVERY < LOWEST_EVERY - 1) return 0;
  const lowest = items.at(-1)?.rank;
  return items.findIndex(({ rank }) => rank === lowest);
}

/** Returns the nodes from the root to the end of a path, which it makes if they do not exist. */
function walk<T>(root: Node<T>, path: readonly string[]): Node<T>[] {
  const nodes = [root];
  let node = root;
  for (const part of path) {
    let next = node.below.get(part);
    if (next === undefined) {
      if (node.below.size >= NODES_MAX) evict(node);
      next = openNode<T>(part, node.floorMs);
      node.below.set(part, next);
    }
    nodes.push(next);
    node = next;
  }
  return nodes;
}

function find<T>(root: Node<T>, path: readonly string[]): Node<T> | undefined {
  let node: Node<T> | undefined = root;
  for (const part of path) node = node?.below.get(part);
  return node;
}

function openNode<T>(part: string, usedMs: number): Node<T> {
  return { part, usedMs, waiting: 0, items: [], served: 0, below: new Map(), floorMs: 0 };
}

/** Evicts idle children whose use the others have reached, and the half of the idle ones that used least. */
function evict<T>(node: Node<T>): void {
  const idle = [...node.below].filter(([, { waiting }]) => waiting === 0);
  idle.sort(([, a], [, b]) => a.usedMs - b.usedMs);
  for (const [at, [part, { usedMs }]] of idle.entries())
    if (usedMs <= node.floorMs || at < idle.length / 2) node.below.delete(part);
}
