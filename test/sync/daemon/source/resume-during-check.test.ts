import { lstatSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openWorld, until } from "../harness.ts";

const FILES = 100;
/** What the next turn of the event loop waits for within a check, and whether a slice of a check ends at once. */
const held = vi.hoisted(() => ({ until: undefined as Promise<unknown> | undefined }));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  return { ...real, lstatSync: vi.fn<typeof real.lstatSync>(real.lstatSync) };
});
vi.mock("node:timers/promises", async (original) => {
  const real = await original<typeof import("node:timers/promises")>();
  return { ...real, setImmediate: async () => (await held.until, await real.setImmediate()) };
});

it("leaves no backlog behind when a source resumes during a check made while paused", async () => {
  const { lstatSync: realLstat } = await vi.importActual<typeof import("node:fs")>("node:fs");
  const world = await openWorld();
  const writeAll = (text: string): void => {
    for (let file = 0; file < FILES; file++) world.write(`${file}.txt`, `${text} ${file}`);
  };
  writeAll("first");
  const daemon = world.daemon();
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();
  await daemon.pause();
  writeAll("second, longer");
  await until(() => daemon.status().sources[0]?.waiting === FILES);

  // The source resumes in the middle of the next check, which ends after that.
  const realNow = performance.now.bind(performance);
  let slices = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => realNow() + 100 * slices++);
  vi.mocked(lstatSync).mockImplementation((...args: Parameters<typeof lstatSync>) => {
    held.until ??= daemon.resume();
    return realLstat(...args);
  });
  await daemon.retry();
  await until(() => held.until !== undefined);
  await held.until;
  clock.mockRestore();

  const path = join(world.root, "0.txt");
  const signal = AbortSignal.timeout(10_000);
  expect(await daemon.wait({ path, signal })).toMatchObject({ agreed: true });
  await daemon.whenIdle();
  expect(world.service.live().every(({ content }) => content?.startsWith("second"))).toBe(true);
  expect(daemon.status().sources).toMatchObject([{ files: FILES, searchable: FILES, waiting: 0 }]);
  stopping.abort();
  await running;
  await world.end();
});
