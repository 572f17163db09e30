import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

const HOUR_MS = 3_600_000;

/** A window around now, by local time. */
function windowNow(): { from: string; to: string } {
  const clock = (ms: number): string => new Date(ms).toTimeString().slice(0, 5);
  return { from: clock(Date.now() - HOUR_MS), to: clock(Date.now() + HOUR_MS) };
}

it("sends no documents in a pause but deletes, says until when, and stops at once", async () => {
  for (const name of ["a", "b", "c"]) world.write(`${name}.txt`, `text of ${name}`);
  await world.sync();
  const timetable = [{ ...windowNow(), uploadRate: "paused" }];
  const daemon = world.daemon({ settings: { limits: { timetable }, concurrency: 4 } });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => daemon.status().idle);
  // More than may be in flight: the delete needs a slot that no document takes.
  for (let index = 0; index < 40; index += 1) world.write(`new ${index}.txt`, `new text ${index}`);
  await until(() => daemon.status().sources[0]?.waiting === 40);
  rmSync(join(world.root, "c.txt"));
  await until(() => world.service.live().length === 2);
  const { service, sources } = daemon.status();
  expect(service).toMatchObject({ kind: "limited", uploadRate: 0 });
  const untilMs = service.kind === "limited" ? (service.untilMs ?? 0) : 0;
  expect(Math.abs(untilMs - (Date.now() + HOUR_MS))).toBeLessThan(2 * 60_000);
  expect(sources[0]).toMatchObject({ waiting: 40, failed: 0 });
  expect(daemon.pulse().service).toBe("limited");
  const startMs = performance.now();
  stop.abort();
  await ended;
  expect(performance.now() - startMs).toBeLessThan(4000);
  await world.sync();
  expect(world.service.live()).toHaveLength(42);
  expect(world.service.requests.filter(({ operation }) => operation === "create")).toHaveLength(43);
});

it("sends everything at a low rate within the requests per minute, in parts of any size", async () => {
  world.write("large.txt", "words ".repeat(100_000));
  for (let index = 0; index < 20; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const daemon = world.daemon({ settings: { limits: { uploadRate: "1 MB/s", requestsPerMinute: 1000 } } });
  const startMs = performance.now();
  await daemon.syncOnce();
  expect(performance.now() - startMs).toBeGreaterThan(400);
  expect(daemon.status().sources[0]).toMatchObject({ inAgreement: 21, waiting: 0, failed: 0 });
  expect(daemon.pulse().service).toBe("open");
  await daemon.close();
});

it("sends a save while all that the backlog may send this minute is used up", async () => {
  for (let index = 0; index < 100; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const daemon = world.daemon({ settings: { limits: { requestsPerMinute: 20 }, concurrency: 4 } });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => world.service.live().length >= 12);
  world.write("saved.txt", "just saved");
  await until(() => world.service.live().some(({ content }) => content === "just saved"));
  expect(world.service.live().length).toBeLessThan(20);
  stop.abort();
  await ended;
});
