import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { openQueue, type Send, type WorkQueue } from "../../../../src/sync/send/queue/queue.ts";
import { type JobKind, RECENT_MAX, TURNS } from "../../../../src/sync/send/queue/order.ts";
import { until } from "../../daemon/harness.ts";

interface Stage {
  readonly queue: WorkQueue<number>;
  /** Jobs in the order in which they began, and those that wait for `release`. */
  readonly started: number[];
  readonly underWay: Map<number, () => void>;
  readonly dropped: number[];
  readonly errors: unknown[];
  readonly batches: number[];
  /** Maximum at once so far. */
  most(): number;
  release(count: number): void;
}

/** A queue of numbers: each is a job of `bytesOf` bytes, and runs until it is released. */
function stage(
  width: number,
  bytesOf: (job: number) => number = () => 1,
  { kindOf = () => "text" }: { kindOf?: (job: number) => JobKind } = {},
): Stage {
  const started: number[] = [];
  const underWay = new Map<number, () => void>();
  const dropped: number[] = [];
  const errors: unknown[] = [];
  const batches: number[] = [];
  let most = 0;
  const sendOf = (job: number): Send<number> => ({
    job,
    bytes: bytesOf(job),
    run: async () => {
      started.push(job);
      if (job < 0) throw new Error(`job ${job}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      underWay.set(job, resolve);
      most = Math.max(most, underWay.size);
      await promise;
      underWay.delete(job);
    },
    drop: () => dropped.push(job),
  });
  const queue = openQueue<number>({
    width,
    lineOf: (job) => ({ owner: ownerOf(job), kind: kindOf(job) }),
    bytesOf,
    prepare: async (jobs) => {
      batches.push(jobs.length);
      await Promise.resolve();
      return jobs.map(sendOf);
    },
    onError: (error) => errors.push(error),
  });
  const release = (count: number): void => {
    for (const resolve of [...underWay.values()].slice(0, count)) resolve();
  };
  return { queue, started, underWay, dropped, errors, batches, most: () => most, release };
}

/** Jobs from here on, and from each multiple of it on, belong to another owner. */
const OWNER = 1_000_000;
const ownerOf = (job: number): number => Math.floor(Math.abs(job) / OWNER);
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** More turns of the event loop than any test here needs. */
const TURNS_MAX = 100_000;

/** Releases everything in flight at each turn of the event loop until this many jobs have started. */
async function runUntilBegun(world: Stage, count: number): Promise<void> {
  for (let turn = 0; world.started.length < count; turn += 1) {
    expect(turn, `${world.started.length} of ${count} jobs have started`).toBeLessThan(TURNS_MAX);
    world.release(Infinity);
    await new Promise(setImmediate);
  }
}

it("runs as many jobs at once as the width allows, equal ones in order of arrival", async () => {
  const world = stage(3);
  world.queue.push(range(300));
  await until(() => world.underWay.size === 3);
  await runUntilBegun(world, 300);
  expect(world.most()).toBe(3);
  expect(world.started).toEqual(range(300));
});

it("follows a width that changes", async () => {
  const world = stage(8);
  world.queue.push(range(200));
  await until(() => world.underWay.size === 6);
  world.queue.setWidth(2);
  world.release(6);
  await until(() => world.underWay.size === 2);
  const before = world.started.length;
  world.release(1);
  await until(() => world.started.length === before + 1);
  expect(world.underWay.size).toBe(2);
  world.queue.setWidth(3);
  await until(() => world.underWay.size === 3);
  await runUntilBegun(world, 200);
});

it("never stops when the width shrinks as jobs end", async () => {
  const world = stage(16);
  world.queue.push(range(400));
  for (const width of [1, 9, 2, 16, 1, 1, 3]) {
    await until(() => world.underWay.size > 0);
    world.release(Infinity);
    world.queue.setWidth(width);
  }
  await runUntilBegun(world, 400);
  expect(world.started.toSorted((a, b) => a - b)).toEqual(range(400));
});

it("runs deletes of the backlog after the files that arrived before them", async () => {
  const world = stage(1, undefined, { kindOf: (job) => (job < 300 ? "text" : "delete") });
  world.queue.push([300]);
  world.queue.push(range(300));
  world.queue.push([301]);
  await runUntilBegun(world, 302);
  expect(world.started).toEqual(range(302));
});

it("runs a recent change next, in slots that the backlog leaves to it, and before the delete that arrived with it", async () => {
  const world = stage(16, undefined, { kindOf: (job) => (job === 3 * OWNER ? "delete" : "text") });
  world.queue.push(range(10_000));
  await runUntilBegun(world, 500);
  await until(() => world.underWay.size === 14);
  world.queue.push([OWNER], { recent: true });
  await until(() => world.underWay.has(OWNER));
  world.queue.push([2 * OWNER, 3 * OWNER], { recent: true });
  await until(() => world.underWay.has(2 * OWNER));
  expect(world.started.slice(-2)).toEqual([OWNER, 2 * OWNER]);
  world.release(1);
  await until(() => world.underWay.has(3 * OWNER));
  expect(world.started.at(-1)).toBe(3 * OWNER);
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it.each([1, 2, 3])(
  "runs a recent change after one request of the backlog with a width of %i",
  async (width) => {
    const world = stage(width);
    world.queue.push(range(1000));
    await until(() => world.underWay.size === width);
    const batches = world.batches.length;
    world.queue.push([OWNER], { recent: true });
    await until(() => world.batches.length > batches);
    await new Promise(setImmediate);
    world.release(1);
    await until(() => world.started.length === width + 1);
    expect(world.started.at(-1)).toBe(OWNER);
    const stopping = world.queue.stop();
    world.release(Infinity);
    await stopping;
  },
);

it("starts the backlog although recent changes never end", async () => {
  const world = stage(1);
  world.queue.push([0]);
  await until(() => world.underWay.has(0));
  world.queue.push([1, 2, 3]);
  for (let next = OWNER; !world.started.includes(3); next += 2) {
    world.queue.push([next, next + 1], { recent: true });
    const { length } = world.started;
    expect(length).toBeLessThan(4 * TURNS);
    await runUntilBegun(world, length + 1);
  }
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it("runs small files of the backlog first, and the last of thousands of recent changes before them", async () => {
  const world = stage(1, (job) => 5000 - job);
  world.queue.push([0]);
  await until(() => world.underWay.has(0));
  world.queue.push(range(1000).slice(1));
  for (let job = 1000; job < 3000; job += 10)
    world.queue.push(
      range(10).map((index) => job + index),
      { recent: true },
    );
  await runUntilBegun(world, 3000);
  const ofRecent = world.started.slice(1, 1 + RECENT_MAX);
  expect(ofRecent).toEqual(range(3000).slice(3000 - RECENT_MAX));
  expect(world.started.slice(1 + RECENT_MAX, 1 + RECENT_MAX + 999)).toEqual(
    range(1000).slice(1).toReversed(),
  );
});

it("withdraws a prepared job that is not in flight, and no other", async () => {
  const world = stage(1);
  world.queue.push([1, 2, 3]);
  await until(() => world.underWay.has(1));
  expect(world.queue.withdraw((job) => job <= 2)).toEqual([2]);
  expect(world.dropped).toEqual([2]);
  await runUntilBegun(world, 2);
  expect(world.started).toEqual([1, 3]);
});

it("refers to nothing of withdrawn jobs while all slots are taken", async () => {
  const texts: WeakRef<object>[] = [];
  const end = Promise.withResolvers<void>();
  const queue = openQueue<number>({
    width: 1,
    lineOf: () => ({ owner: 0, kind: "text" }),
    bytesOf: () => 1,
    prepare: async (jobs) => {
      await Promise.resolve();
      return jobs.map((job) => {
        const text = { job };
        texts[job] = new WeakRef(text);
        return { job, bytes: 1, run: () => end.promise.then(() => void text), drop: () => undefined };
      });
    },
    onError: (error) => {
      throw error;
    },
  });
  queue.push([0]);
  await until(() => texts.length === 1);
  for (const job of range(20).slice(1)) {
    queue.push([job]);
    await until(() => queue.withdraw((each) => each === job).length === 1);
  }
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await new Promise(setImmediate);
  collect();
  expect(texts.filter((text) => text.deref() !== undefined).length).toBe(1);
  const stopping = queue.stop();
  end.resolve();
  await stopping;
});

it("prepares a few jobs ahead and no more, however many wait", async () => {
  const world = stage(1);
  world.queue.push(range(100_000));
  await until(() => world.underWay.size === 1);
  const prepared = (): number => world.batches.reduce((sum, count) => sum + count, 0);
  const AHEAD_MAX = 1000;
  expect(prepared()).toBeLessThanOrEqual(AHEAD_MAX);
  await runUntilBegun(world, 300);
  expect(prepared()).toBeLessThanOrEqual(300 + AHEAD_MAX);
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it("uses no more than its memory budget, and lets one larger job through alone", async () => {
  const megabyte = 1024 * 1024;
  const world = stage(64, (job) => (job === 5 ? 200 : 10) * megabyte);
  world.queue.push(range(20));
  const held = (): number => [...world.underWay.keys()].reduce((sum, job) => sum + (job === 5 ? 200 : 10), 0);
  let mostHeld = 0;
  let largeBeside = 0;
  await until(() => {
    mostHeld = Math.max(mostHeld, world.underWay.has(5) ? 0 : held());
    if (world.underWay.has(5)) largeBeside = Math.max(largeBeside, world.underWay.size - 1);
    world.release(1);
    return world.started.length === 20;
  });
  expect(mostHeld).toBeLessThanOrEqual(64);
  expect(largeBeside).toBe(0);
});

it("drops jobs that have not started when it stops, and waits for those that have", async () => {
  const world = stage(2);
  world.queue.push(range(100));
  await until(() => world.underWay.size === 2);
  let stopped = false;
  const stopping = world.queue.stop().then(() => (stopped = true));
  await until(() => world.batches.length > 0);
  expect(stopped).toBe(false);
  world.release(Infinity);
  await stopping;
  expect(world.started).toEqual([0, 1]);
  expect(world.dropped).not.toEqual([]);
  expect(world.dropped).toEqual(range(2 + world.dropped.length).slice(2));
  world.queue.push([7]);
  expect(world.started).toEqual([0, 1]);
});

it("reports what a job threw, and continues with the others", async () => {
  const world = stage(1);
  world.queue.push([-1, 1, -2, 2]);
  await runUntilBegun(world, 4);
  expect(world.errors).toEqual([new Error("job -1"), new Error("job -2")]);
});

it("sends as many other jobs as there are waits, and no more", async () => {
  const waits = range(4).map(() => Promise.withResolvers<void>());
  const seen: number[] = [];
  const started: number[] = [];
  const queue: WorkQueue<number> = openQueue<number>({
    width: 2,
    lineOf: () => ({ owner: 0, kind: "text" }),
    bytesOf: () => 1,
    prepare: async (jobs) => {
      await Promise.resolve();
      return jobs.map((job) => ({
        job,
        bytes: 1,
        run: async (yieldSlot) => {
          started.push(job);
          const end = waits[job];
          if (end === undefined) return Promise.race([]);
          return yieldSlot((waitsPerSlot) => end.promise.then(() => void seen.push(waitsPerSlot())));
        },
        drop: () => undefined,
      }));
    },
    onError: (error) => {
      throw error;
    },
  });
  queue.push(range(8));
  // Four jobs that wait and two that do not.
  await until(() => started.length === 6);
  waits[0]?.resolve();
  waits[1]?.resolve();
  await until(() => seen.length === 2);
  queue.setWidth(2);
  expect(started).toEqual(range(6));
  expect(seen).toEqual([2, 2]);
  queue.setWidth(3);
  await until(() => started.length === 7);
  expect(started).toEqual(range(7));
});

it("lets two hundred jobs of a line wait at once, and recent ones beside them, and waits for all of them when it stops", async () => {
  const end = Promise.withResolvers<void>();
  let started = 0;
  const queue: WorkQueue<number> = openQueue<number>({
    width: 2,
    lineOf: () => ({ owner: 0, kind: "text" }),
    bytesOf: () => 1,
    prepare: async (jobs) => {
      await Promise.resolve();
      const run: Send<number>["run"] = (yieldSlot) => yieldSlot(() => ((started += 1), end.promise));
      return jobs.map((job) => ({ job, bytes: 1, run, drop: () => undefined }));
    },
    onError: (error) => {
      throw error;
    },
  });
  queue.push(range(1100));
  await until(() => started === 200);
  queue.push([2000], { recent: true });
  await until(() => started === 201);
  let stopped = false;
  const stopping = queue.stop().then(() => (stopped = true));
  queue.setWidth(2);
  await new Promise(setImmediate);
  expect([started, stopped]).toEqual([201, false]);
  end.resolve();
  await stopping;
  expect(started).toBe(201);
});

it("sends the jobs of one owner although another's fill the queue and never end", async () => {
  const world = stage(16);
  const others = range(50).map((job) => OWNER + job);
  world.queue.push(range(10_000));
  await until(() => world.underWay.size === 8);
  world.queue.push(others);
  await until(() => {
    for (const [job, resolve] of world.underWay) if (job >= OWNER) resolve();
    return world.started.filter((job) => job >= OWNER).length === 50;
  });
  expect(world.started.filter((job) => job < OWNER)).toEqual(range(8));
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it("shares the width between owners, and gives all of it to a single one with work", async () => {
  const world = stage(10);
  world.queue.push(range(3000));
  await runUntilBegun(world, 1000);
  await until(() => world.underWay.size === 8);
  world.queue.push(range(3000).map((job) => OWNER + job));
  const ofSecond = (): number => [...world.underWay.keys()].filter((job) => job >= OWNER).length;
  await until(() => {
    if (ofSecond() < 4) world.release(1);
    return world.underWay.size === 8 && ofSecond() === 4;
  });
  await runUntilBegun(world, 6000);
});

it("prepares small jobs although another owner's jobs hold all bytes", async () => {
  const megabyte = 1024 * 1024;
  const world = stage(64, (job) => (job < OWNER ? 16 : 1) * megabyte);
  world.queue.push(range(100));
  await until(() => world.underWay.size === 4);
  world.queue.push(range(10).map((job) => OWNER + job));
  await until(() => world.underWay.size === 12);
  expect([...world.underWay.keys()].filter((job) => job < OWNER)).toEqual(range(4));
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it("runs deletes before other owners' files have ended", async () => {
  const world = stage(4, undefined, { kindOf: (job) => (job < OWNER ? "text" : "delete") });
  world.queue.push(range(10_000));
  world.queue.push([OWNER]);
  await until(() => {
    world.release(Infinity);
    return world.started.includes(OWNER);
  });
  expect(world.started.length).toBeLessThan(1000);
  const stopping = world.queue.stop();
  world.release(Infinity);
  await stopping;
});

it.each([
  {
    name: "a queue does not send fewer jobs because the service processes them for long after accepting them",
    yields: "at once",
    first: 200,
    most: 200,
  },
  {
    name: "a queue sends fewer jobs at once, down to one, if requests take long",
    yields: "never",
    first: 8,
    most: 1,
  },
  {
    name: "a queue sends fewer jobs at once, down to one, if the service takes long until it accepts them",
    yields: "at the end",
    first: 8,
    most: 1,
  },
])("$name", async ({ yields, first, most }) => {
  let clockMs = 0;
  const underWay = new Set<() => void>();
  const queue = openQueue<number>({
    width: 64,
    lineOf: () => ({ owner: 0, kind: "text" }),
    bytesOf: () => 1,
    elapsedMs: () => clockMs,
    prepare: async (jobs) => {
      await Promise.resolve();
      const run: Send<number>["run"] = async (yieldSlot) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        underWay.add(resolve);
        await (yields === "at once" ? yieldSlot(() => promise) : promise);
        underWay.delete(resolve);
        if (yields === "at the end") await yieldSlot(() => Promise.resolve());
      };
      return jobs.map((job) => ({ job, bytes: 1, run, drop: () => undefined }));
    },
    onError: (error) => {
      throw error;
    },
  });
  queue.push(range(10_000));
  await until(() => underWay.size === first);
  for (let round = 0; round < 20; round += 1) {
    clockMs += 20_000;
    const before = [...underWay];
    for (const release of before) release();
    await until(() => underWay.size > 0 && before.every((each) => !underWay.has(each)));
  }
  await until(() => underWay.size === most);
  const stopping = queue.stop();
  for (const release of underWay) release();
  await stopping;
});
