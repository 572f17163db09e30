import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Daemon } from "../../../src/sync/daemon.ts";
import { openWorld, SINGLE_DELETES, until, type World } from "./harness.ts";

let world: World;
let gate: PromiseWithResolvers<void>;
beforeEach(async () => {
  world = await openWorld();
  gate = Promise.withResolvers();
});
afterEach(async () => {
  gate.resolve();
  await world.end();
});

/** Runs a daemon until its first sync has sent as much as it may, and gives it to `during`. */
async function run(during: (daemon: Daemon, sent: () => string[]) => Promise<void>): Promise<void> {
  const sent = (): string[] =>
    world.service.requests
      .filter(({ operation }) => operation === "create" || operation === "update")
      .map(({ body }) => String(body?.["content"] ?? body?.["url"]));
  const daemon = world.daemon({ settings: { settleMs: 5 }, timing: SINGLE_DELETES });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => world.service.count("create") >= 8 && !daemon.status().idle);
  await during(daemon, sent);
  gate.resolve();
  await until(() => daemon.status().idle, undefined, 60_000);
  stop.abort();
  await ended;
}

it("sends what a person saves next, while no request of a first sync of thousands of files is answered", async () => {
  for (let index = 0; index < 3000; index += 1) world.write(`${index}.txt`, `text ${"x".repeat(index)}`);
  let isHeld = false;
  world.service.fault = ({ operation, body }) => {
    if (operation === "create") isHeld ||= world.service.live().length > 100;
    const isBacklog = String(body?.["content"]).startsWith("text");
    return isHeld && operation === "create" && isBacklog ? { kind: "wait", until: gate.promise } : undefined;
  };
  await run(async (daemon, sent) => {
    await until(() => isHeld);
    world.write("new.txt", "a new file");
    await until(() => sent().includes("a new file"));
    // It waited in the queue, and its older version is never sent.
    world.write("2900.txt", "edited in the queue");
    // It was prepared: its size is next.
    world.write("140.txt", "edited when it was about to be sent");
    // It has a resource.
    world.write("1.txt", "edited again");
    rmSync(join(world.root, "2.txt"));
    await until(
      () =>
        ["edited in the queue", "edited when it was about to be sent", "edited again"].every((text) =>
          sent().includes(text),
        ) && world.service.count("delete") === 1,
    );
    expect(world.service.live().length).toBeLessThan(200);
    expect(daemon.status().sources[0]?.waiting).toBeGreaterThan(2500);
  });
  expect(world.service.live()).toHaveLength(3000);
  expect(
    world.service.requests.filter(({ body }) => body?.["content"] === `text ${"x".repeat(2900)}`),
  ).toEqual([]);
});

it("sends what a person saves next, while hundreds of uploads wait for a service that reads each for minutes", async () => {
  world.write("first.txt", "shows the service's id of the collection");
  for (let index = 0; index < 300; index += 1) world.write(`${index}.pdf`, `%PDF-1.4 ${index}`);
  world.service.fault = ({ operation, body }) =>
    operation === "create" && body?.["url"] !== undefined ? { kind: "wait", until: gate.promise } : undefined;
  await run(async (_daemon, sent) => {
    world.write("new.txt", "a new file");
    await until(() => sent().includes("a new file"));
    const [uploads, creates] = [world.service.count("upload"), world.service.count("create")];
    world.write("new.pdf", "%PDF-1.4 of a person");
    await until(() => world.service.count("create") > creates);
    expect([...world.service.uploads.values()].at(-1)?.content.toString()).toBe("%PDF-1.4 of a person");
    expect(world.service.count("upload")).toBe(uploads + 1);
  });
  expect(world.service.live()).toHaveLength(303);
});
