import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon } from "../../../src/sync/daemon.ts";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
let stopping: AbortController;
let running: Promise<void>;
beforeEach(async () => {
  world = await openWorld();
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await running;
  await world.end();
});

/** Whether any part has something to do now. */
const works = (daemon: Daemon): boolean => daemon.pulse().queue.atWork || daemon.pulse().scan.atWork;

function start(): Daemon {
  const daemon = world.daemon();
  running = daemon.run({ signal: stopping.signal });
  return daemon;
}

describe("the pulse of a daemon", () => {
  it("advances the pulse while files are sent, and stops it at rest", async () => {
    for (let file = 0; file < 20; file += 1) world.write(`${file}.md`, `text ${file}`);
    const daemon = start();
    expect(daemon.pulse().queue.moves).toBe(0);
    await until(() => daemon.status().idle && !works(daemon));
    const rest = daemon.pulse();
    expect(rest.queue.moves).toBeGreaterThanOrEqual(40);
    expect(rest.scan.moves).toBeGreaterThan(0);
    expect(rest.service).toBe("open");
    world.write("more.md", "more");
    await until(() => daemon.pulse().queue.moves > rest.queue.moves && !works(daemon));
  });

  it("stops the pulse with work left while a request gets no answer", async () => {
    world.write("first.md", "the collection becomes known");
    const daemon = start();
    await until(() => daemon.status().idle && !works(daemon));
    const answered = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "wait", until: answered.promise } : undefined;
    world.write("stuck.md", "stuck");
    const creates = (): number =>
      world.service.requests.filter(({ operation }) => operation === "create").length;
    await until(() => creates() === 2);
    // The event loop turns meanwhile: others get answers.
    const turn = async (): Promise<unknown> => fetch(world.service.url);
    await turn();
    const stuck = daemon.pulse();
    expect(stuck).toMatchObject({ queue: { atWork: true }, service: "open" });
    for (let turns = 0; turns < 10; turns += 1) await turn();
    expect(daemon.pulse()).toEqual(stuck);
    // Scans continue, and do not conceal that the queue has stopped.
    await daemon.retry();
    await until(() => daemon.pulse().scan.moves > stuck.scan.moves && !daemon.pulse().scan.atWork);
    expect(daemon.pulse().queue).toEqual(stuck.queue);
    answered.resolve();
    await until(() => !works(daemon));
    expect(daemon.pulse().queue.moves).toBeGreaterThan(stuck.queue.moves);
  });

  it("reports in the pulse that the service is down", async () => {
    world.write("a.md", "a");
    world.service.fault = () => ({ kind: "answer", status: 503, body: "{}" });
    const daemon = start();
    await until(() => daemon.pulse().service === "waiting");
    world.service.fault = () => undefined;
    await until(() => daemon.status().idle, undefined, 15_000);
  });

  it("reports no work in the pulse while the folder is missing", async () => {
    world.write("a.md", "a");
    const daemon = start();
    await until(() => daemon.status().idle);
    rmSync(world.root, { recursive: true });
    await daemon.retry();
    await until(() => daemon.status().sources[0]?.halted === true && !works(daemon));
  });

  it("reports no work in the pulse for a paused source with waiting files", async () => {
    const daemon = start();
    await until(() => daemon.status().idle);
    await daemon.pause();
    world.write("a.md", "a");
    await until(() => daemon.status().sources[0]?.waiting === 1 && !works(daemon));
  });
});
