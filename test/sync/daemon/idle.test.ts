import { afterEach, beforeEach, expect, it } from "vitest";
import { openWorld, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => world.end());

it("a daemon is idle only when a replaced resource has been deleted too", async () => {
  world.write("a.txt", "one");
  await world.sync();
  const sources = [world.source({ settings: { chunkSize: 300 } })];
  const daemon = world.daemon({ sources });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await daemon.whenIdle();
  expect(world.service.live()).toMatchObject([{ settings: { chunkSize: 300 } }]);
  stop.abort();
  await ended;
});
