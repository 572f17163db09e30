import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import { openWorld, until, type World } from "../harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
  for (let n = 0; n < FILES; n += 1) world.write(`${n}.md`, `text ${n}`);
});
afterEach(async () => {
  await world.end();
});

const FILES = 30;
const never = () => [world.source({ deletes: "never" })];
const titles = (): string[] => world.service.live().map(({ title }) => title);
const status = () => readStatus(world.stateDir, 100);
const counts = () => {
  const [source] = status()?.sources ?? [];
  return source && { files: source.files, held: source.held, kept: source.kept, reason: source.holdReason };
};
const remove = (...names: number[]): void => {
  for (const name of names) rmSync(join(world.root, `${name}.md`));
};

describe("a source that deletes nothing", () => {
  it("keeps the documents of files that are gone, counts them, and asks nobody", async () => {
    await world.sync({ sources: never() });
    remove(...Array.from({ length: FILES - 1 }, (_, n) => n));
    await world.sync({ sources: never() });
    expect(titles()).toHaveLength(FILES);
    expect(counts()).toEqual({ files: 1, held: 0, kept: FILES - 1, reason: null });
    expect(status()?.troubled).toEqual([]);
    world.write("new.md", "a new one");
    await world.sync({ sources: never() });
    expect(titles()).toHaveLength(FILES + 1);
  });

  it("updates the document of a file that returns, and follows one that is renamed", async () => {
    await world.sync({ sources: never() });
    renameSync(join(world.root, "1.md"), join(world.root, "one.md"));
    remove(0);
    await world.sync({ sources: never() });
    expect(titles()).toHaveLength(FILES);
    world.write("0.md", "another text");
    await world.sync({ sources: never() });
    expect(titles()).toHaveLength(FILES);
    expect(world.service.live().map(({ content }) => content)).toContain("another text");
    expect(counts()).toMatchObject({ files: FILES, kept: 0 });
  });

  it("keeps what a rule leaves out later", async () => {
    await world.sync({ sources: never() });
    await world.sync({ sources: [world.source({ deletes: "never", exclude: ["1*.md"] })] });
    expect(titles()).toHaveLength(FILES);
    expect(counts()).toMatchObject({ kept: 11, held: 0 });
  });

  it("goes on with new files in a folder that was emptied and made again", async () => {
    await world.sync({ sources: never() });
    remove(...Array.from({ length: FILES }, (_, n) => n));
    await world.sync({ sources: never() });
    rmSync(world.root, { recursive: true });
    mkdirSync(world.root);
    world.write("new.md", "a new one");
    await world.sync({ sources: never() });
    expect(titles()).toHaveLength(FILES + 1);
    expect(counts()).toEqual({ files: 1, held: 0, kept: FILES, reason: null });
  });

  it("is idle while documents are kept, in a daemon that watches", async () => {
    const daemon = world.daemon({ sources: never() });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await daemon.whenIdle();
    remove(0, 1, 2);
    await until(() => daemon.status().sources[0]?.kept === 3);
    await daemon.whenIdle();
    expect(daemon.status().sources[0]).toMatchObject({ files: FILES - 3, waiting: 0, held: 0 });
    expect(await daemon.why(join(world.root, "0.md"), AbortSignal.timeout(10_000))).toMatchObject({
      next: { action: "nothing", why: expect.stringContaining('"deletes": "never"') as string },
    });
    stopping.abort();
    await running;
    expect(titles()).toHaveLength(FILES);
  });

  it("holds what it kept for a person once it deletes again", async () => {
    await world.sync({ sources: never() });
    remove(0, 1, 2);
    await world.sync({ sources: never() });
    await world.sync();
    expect(titles()).toHaveLength(FILES);
    expect(counts()).toMatchObject({ held: 3, kept: 0 });
    await world.offline.approve(world.root, status()?.sources[0]?.approval?.token ?? "");
    await world.sync();
    expect(titles()).toHaveLength(FILES - 3);
  });
});
