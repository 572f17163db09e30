import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openWorld, SINGLE_DELETES, until } from "../daemon/harness.ts";

it("a folder in the source's place whose deletes are held is compared with the service once, and its new files are sent", async () => {
  const world = await openWorld({ collections: true });
  try {
    for (let n = 1; n <= 24; n += 1) world.write(`${n}.txt`, `text ${n}`);
    const daemon = world.daemon({ timing: SINGLE_DELETES });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.live().length === 24 && daemon.status().idle);
    // The service has lost one document, which the list does not show.
    for (const each of world.service.live()) if (each.title === "24.txt") each.isDeleted = true;
    const other = `${world.root}-other`;
    cpSync(world.root, other, { recursive: true, preserveTimestamps: true });
    for (let n = 1; n <= 14; n += 1) rmSync(join(other, `${n}.txt`));
    renameSync(world.root, `${world.root}-before`);
    renameSync(other, world.root);
    await until(() => (daemon.status().sources[0]?.held ?? 0) > 0 && daemon.status().idle);
    world.write("new.txt", "a new file");
    await until(() => world.service.live().some(({ title }) => title === "new.txt"));
    await until(() => daemon.status().idle);
    const titles = world.service.live().map(({ title }) => title);
    expect([titles.length, titles.includes("24.txt")]).toEqual([25, true]);
    stop.abort();
    await ended;
  } finally {
    await world.end();
  }
});
