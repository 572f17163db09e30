import { afterEach, beforeEach, expect, it } from "vitest";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

it("sends everything within the requests per minute, and says that the limit holds", async () => {
  for (let index = 0; index < 20; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const daemon = world.daemon({ settings: { requestsPerMinute: 1000 } });
  await daemon.syncOnce();
  const { service, sources } = daemon.status();
  expect(sources[0]).toMatchObject({ searchable: 20, waiting: 0, failed: 0 });
  expect(service).toEqual({ kind: "limited", requestsPerMinute: 1000 });
  expect(daemon.pulse().service).toBe("open");
  await daemon.close();
});

it("sends a save while all that the backlog may send this minute is used up", async () => {
  for (let index = 0; index < 100; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const daemon = world.daemon({ settings: { requestsPerMinute: 20 } });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => world.service.live().length >= 12);
  world.write("saved.txt", "just saved");
  await until(() => world.service.live().some(({ content }) => content === "just saved"));
  expect(world.service.live().length).toBeLessThan(20);
  stop.abort();
  await ended;
});
