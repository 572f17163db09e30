import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openWorld, until } from "./harness.ts";

it("tries a parked file again when its folder can be looked at again, though its time came before that", async () => {
  const world = await openWorld({ collections: true });
  world.write("a/x.txt", "text x");
  world.service.fault = ({ operation }) =>
    operation === "create" ? { kind: "answer", status: 500, body: "oops" } : undefined;
  await world.sync();
  expect(world.activity).toMatchObject([{ path: "a/x.txt", outcome: "parked" }]);

  world.service.fault = () => undefined;
  // So large an ignore file is not read: what it would leave out is unknown, and nothing below it is looked at.
  world.write("a/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
  const daemon = world.daemon();
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => daemon.status().idle && daemon.status().sources[0]?.unreadable === 1);
  rmSync(join(world.root, "a/.kbsyncignore"));
  daemon.rescan();
  await until(
    () => world.service.live().length === 1,
    () => JSON.stringify(daemon.status().sources),
  );
  stop.abort();
  await ended;
  await world.end();
});
