import { mkdirSync, openSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openWorld, until, type World } from "../harness.ts";

/** Counts opens of files: no file may be read twice for a rename. */
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  return { ...real, openSync: vi.fn<typeof real.openSync>(real.openSync) };
});

const FILES = 150;
let world: World;

beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

/** Number of files of the folder by how often they were opened since the last `mockClear`. */
function reads(): Record<string, number> {
  const paths = vi.mocked(openSync).mock.calls.map(([path]) => String(path));
  const counts = Map.groupBy(
    paths.filter((path) => path.startsWith(`${world.root}/`)),
    (path) => path,
  );
  const byCount = Map.groupBy(counts.values(), ({ length }) => length);
  return Object.fromEntries([...byCount].map(([times, files]) => [`${times} times`, files.length]));
}

/** Requests to the service since `from` requests, by operation. */
function requests(from: number): Record<string, number> {
  const later = Map.groupBy(world.service.requests.slice(from), ({ operation }) => operation);
  return Object.fromEntries([...later].map(([operation, each]) => [operation, each.length]));
}

const renameFolder = (): void => renameSync(join(world.root, "old"), join(world.root, "new"));
const renameEach = (): void => {
  mkdirSync(join(world.root, "new"));
  for (const name of readdirSync(join(world.root, "old")))
    renameSync(join(world.root, "old", name), join(world.root, "new", `again-${name}`));
};

describe.each([
  { name: "a folder renamed", rename: renameFolder },
  { name: "files renamed one by one", rename: renameEach },
])("$name", ({ rename }) => {
  const settled = "---\ntitle: Its own\ndescription: Says what it is\n---\n";

  it.each([
    { name: "whose description is the path", head: "# Title\n" },
    { name: "that say themselves what they are", head: settled },
  ])("files $name cost one read each and no upload when they are renamed", async ({ head }) => {
    for (let file = 0; file < FILES; file++) world.write(`old/${file}.md`, `${head}text ${file}`);
    await world.sync();
    const before = world.service.requests.length;
    const ids = [...world.service.resources.keys()].toSorted();
    vi.mocked(openSync).mockClear();
    rename();
    await world.sync();
    expect(requests(before)).toEqual({ update: FILES });
    expect(reads()).toEqual({ "1 times": FILES });
    expect([...world.service.resources.keys()].toSorted()).toEqual(ids);
    for (const { body } of world.service.requests.slice(before))
      expect(Object.keys(body ?? {}).toSorted()).toEqual(["description", "title"]);
  });

  it("a rename costs a running daemon the same", async () => {
    for (let file = 0; file < FILES; file++) world.write(`old/${file}.md`, `# Title\ntext ${file}`);
    const daemon = world.daemon({ settings: { settleMs: 50 } });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await daemon.whenIdle();
    const before = world.service.requests.length;
    vi.mocked(openSync).mockClear();
    rename();
    await until(
      () => requests(before)["update"] === FILES,
      () => JSON.stringify(requests(before)),
      30_000,
    );
    await daemon.whenIdle();
    stopping.abort();
    await running;
    expect(requests(before)).toEqual({ update: FILES });
    expect(reads()).toEqual({ "1 times": FILES });
  });
});
