import { afterEach, beforeEach, expect, it } from "vitest";
import { openWorld, type World } from "./harness.ts";

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
  expect(sources[0]).toMatchObject({ inAgreement: 20, waiting: 0, failed: 0 });
  expect(service).toEqual({ kind: "limited", requestsPerMinute: 1000 });
  expect(daemon.pulse().service).toBe("open");
  await daemon.close();
});
