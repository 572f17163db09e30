/** Whose timer it is: those of a process that died never fire. */
export interface Owner {
  readonly alive: boolean;
}

/** Something that is to happen. */
export interface Timer {
  readonly atMs: number;
  cancel(): void;
}

/** Time that passes only when nothing else can run, and what is to happen in it. */
export interface Clock {
  /** Since the simulation began; never set back. */
  nowMs(): number;
  /** The time of day as the daemon's machine has it. */
  wallMs(): number;
  /** Sets the time of day by so much. */
  setWall(byMs: number): void;
  /** What happens at the same time happens in the order it was asked for. */
  at(atMs: number, owner: Owner, run: () => void): Timer;
  /**
   * The same for what other programs do to the disk: it happens also while the daemon computes, between two of its calls
   * into the file system.
   */
  onDisk(atMs: number, run: () => void): Timer;
  /** The daemon's own work takes time. */
  charge(ms: number): void;
  /** Lets everything happen up to a time. `before` is asked before each event of an owner's; false leaves it out. */
  run(untilMs: number, before: (owner: Owner) => boolean): Promise<void>;
  /** Events so far. */
  events(): number;
}

/** Where the wall clock begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

/**
 * More events than this in one simulation is a loop without end. A hundred documents that a service reads for two hours take half
 * as many: each looks twice a second whether its file has changed.
 */
const EVENTS_MAX = 4_000_000;

class Entry implements Timer {
  readonly atMs: number;
  readonly order: number;
  readonly owner: Owner;
  run: (() => void) | undefined;

  constructor(atMs: number, order: number, owner: Owner, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.owner = owner;
    this.run = run;
  }
  cancel(): void {
    this.run = undefined;
  }
}

const ALWAYS: Owner = { alive: true };

/** Starts a clock at zero. `turn` gives the real loop a turn, in which every promise and tick goes as far as it can. */
export function openClock(turn: () => Promise<void>): Clock {
  let nowMs = 0;
  let setByMs = 0;
  let order = 0;
  let count = 0;
  const timers = openHeap();
  const disk = openHeap();

  const add = (heap: Heap, atMs: number, owner: Owner, run: () => void): Timer => {
    order += 1;
    const entry = new Entry(Math.max(atMs, nowMs), order, owner, run);
    heap.push(entry);
    return entry;
  };
  const fire = (entry: Entry): void => {
    count += 1;
    if (count > EVENTS_MAX) throw new Error(`more than ${EVENTS_MAX} events: a loop without end`);
    const { run } = entry;
    entry.run = undefined;
    run?.();
  };

  return {
    nowMs: () => nowMs,
    wallMs: () => EPOCH_MS + setByMs + nowMs,
    setWall: (byMs) => {
      setByMs += byMs;
    },
    at: (atMs, owner, run) => add(timers, atMs, owner, run),
    onDisk: (atMs, run) => add(disk, atMs, ALWAYS, run),
    charge: (ms) => {
      const untilMs = nowMs + ms;
      for (let next = disk.peek(); next !== undefined && next.atMs <= untilMs; next = disk.peek()) {
        nowMs = Math.max(nowMs, next.atMs);
        disk.pop();
        fire(next);
      }
      nowMs = Math.max(nowMs, untilMs);
    },
    run: async (untilMs, before) => {
      for (;;) {
        await turn();
        const [timer, write] = [timers.peek(), disk.peek()];
        const isWrite = write !== undefined && (timer === undefined || isBefore(write, timer));
        const next = isWrite ? write : timer;
        if (next === undefined || next.atMs > untilMs) break;
        (isWrite ? disk : timers).pop();
        if (next.run === undefined || !next.owner.alive) continue;
        nowMs = Math.max(nowMs, next.atMs);
        if (before(next.owner)) fire(next);
      }
      nowMs = Math.max(nowMs, untilMs);
    },
    events: () => count,
  };
}

interface Heap {
  push(entry: Entry): void;
  peek(): Entry | undefined;
  pop(): void;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** A binary heap: the earliest first. */
function openHeap(): Heap {
  const entries: Entry[] = [];
  const sift = (from: number): void => {
    let at = from;
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        const entry = entries[child];
        const best = entries[least];
        if (entry !== undefined && best !== undefined && isBefore(entry, best)) least = child;
      }
      if (least === at) return;
      swap(entries, at, least);
      at = least;
    }
  };
  return {
    push: (entry) => {
      let at = entries.push(entry) - 1;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        const above = entries[parent];
        if (above === undefined || isBefore(above, entry)) break;
        swap(entries, at, parent);
        at = parent;
      }
    },
    peek: () => {
      while (entries[0] !== undefined && entries[0].run === undefined) remove(entries, sift);
      return entries[0];
    },
    pop: () => remove(entries, sift),
  };
}

function remove(entries: Entry[], sift: (from: number) => void): void {
  const last = entries.pop();
  if (last === undefined || entries.length === 0) return;
  entries[0] = last;
  sift(0);
}

function swap(entries: Entry[], a: number, b: number): void {
  const [first, second] = [entries[a], entries[b]];
  if (first === undefined || second === undefined) return;
  entries[a] = second;
  entries[b] = first;
}
