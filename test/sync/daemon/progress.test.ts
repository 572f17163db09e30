import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon, DaemonStatus } from "../../../src/sync/daemon.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

async function pass(): Promise<DaemonStatus> {
  const daemon = world.daemon();
  const { status } = await daemon.syncOnce();
  await daemon.close();
  return status;
}

it("counts a file that the service refuses as a failure, not as a change", async () => {
  world.service.fault = ({ operation, body }) =>
    operation === "create" && JSON.stringify(body).includes("odd")
      ? { kind: "answer", status: 422, body: '{"success":false,"message":"too odd"}' }
      : undefined;
  for (let index = 0; index < 4; index += 1) world.write(`odd-${index}.txt`, `odd ${index}`);
  world.write("good.txt", "good");
  const status = await pass();
  expect(status.progress).toMatchObject({ done: 5, total: 5, sent: 1, failed: 4 });
  expect(status.sources).toMatchObject([{ files: 5, searchable: 1, failed: 4, waiting: 0 }]);
  // A failure of an earlier pass does not count as work of this one.
  world.write("more.txt", "more");
  expect((await pass()).progress).toMatchObject({ done: 1, sent: 1, failed: 0 });
});

it("counts documents that are no plain text by themselves", async () => {
  world.write("a.txt", "a");
  world.write("b.png", "\u0089PNG");
  expect((await pass()).progress).toMatchObject({ done: 2, total: 2, documents: { done: 1, total: 1 } });
});

it("counts a delete that the service refuses as a failure", async () => {
  world.write("a.txt", "a");
  world.write("b.txt", "b");
  await pass();
  world.service.fault = ({ operation }) =>
    operation === "delete" ? { kind: "answer", status: 422, body: '{"success":false}' } : undefined;
  unlinkSync(join(world.root, "a.txt"));
  expect((await pass()).progress).toMatchObject({ done: 1, sent: 0, failed: 1 });
});

describe("a file is counted once", () => {
  const FILES = 40;
  const SLOW_MS = 60;
  const fill = (): void => {
    for (let index = 0; index < FILES; index += 1) world.write(`${index}.txt`, `text ${index}`);
  };

  it("counts a file once from the ledger alone, wherever the process was killed", async () => {
    fill();
    // Slow enough for several commits while files are in flight.
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "wait", until: setTimeout(SLOW_MS) } : undefined;
    const counts: unknown[] = [];
    for (let crashAt = 11; crashAt < 26; crashAt += 1) {
      const stateDir = join(world.stateDir, String(crashAt));
      let commits = 0;
      const daemon = world.daemon({
        stateDir,
        // Another state folder is another installation, which does not take over the documents of the one before.
        sources: [world.source({ ownerId: `owner ${crashAt}` })],
        settings: { concurrency: 4 },
        step: (name) => {
          if (name === "commit" && (commits += 1) >= crashAt) throw new Error("killed");
        },
      });
      await daemon.syncOnce().catch(() => undefined);
      await daemon.close().catch(() => undefined);
      const [source] = readStatus(stateDir, 0)?.sources ?? [];
      counts.push([source?.files, source?.searchable, source?.waiting]);
    }
    const [first] = counts;
    expect(first).toEqual([FILES, 1, FILES - 1]);
    expect(counts.filter((count) => Array.isArray(count) && count[0] !== FILES)).toEqual([]);
    expect(counts.at(-1)).toEqual([FILES, FILES, 0]);
  });

  it("counts a file once in a running daemon at every moment", async () => {
    fill();
    const seen = new Set<number>();
    const daemon: Daemon = world.daemon({
      settings: { concurrency: 4 },
      step: (name) => {
        if (name !== "committed") return;
        for (const { files, searchable, waiting, failed } of daemon.status().sources) {
          seen.add(files);
          expect(searchable + waiting + failed).toBe(files);
        }
      },
    });
    await daemon.syncOnce();
    await daemon.close();
    expect([...seen].filter((files) => files !== 0 && files !== FILES)).toEqual([]);
  });

  it("counts a file once that failed before and is tried again, or waits in a pause", async () => {
    world.service.fault = ({ operation }) =>
      operation === "create"
        ? { kind: "answer", status: 422, body: '{"success":false,"message":"too odd"}' }
        : undefined;
    world.write("a.txt", "a");
    world.write("b.txt", "b");
    expect((await pass()).sources).toMatchObject([{ files: 2, failed: 2, waiting: 0 }]);
    await world.offline.pause();
    world.write("a.txt", "changed");
    expect((await pass()).sources).toMatchObject([{ files: 2, failed: 1, waiting: 1 }]);
    await world.offline.resume();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let asked = 0;
    world.service.fault = ({ operation }) => {
      if (operation !== "create") return undefined;
      asked += 1;
      return { kind: "wait", until: released };
    };
    const daemon = world.daemon();
    const passing = daemon.syncOnce();
    await until(() => asked > 0);
    expect(daemon.status().sources).toMatchObject([{ files: 2 }]);
    release();
    expect((await passing).status.sources).toMatchObject([{ files: 2, searchable: 1, failed: 1 }]);
    await daemon.close();
  });
});
