import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { innerFolders } from "../../../../src/config/folders.ts";
import { changeLedger } from "../../../../src/sync/operate/offline.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import type { WatchedSource } from "../../../../src/sync/scan/rules/rules.ts";
import { openWorld, until, type World } from "../harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

type Named = readonly [folder: string, ownerId: string, more?: Record<string, unknown>];
/** Sources at folders below the world's own ("" is that), as the configuration has them. */
function nested(...named: readonly Named[]): WatchedSource[] {
  const sources = named.map(([folder, ownerId, more]) => {
    const path = join(world.root, folder);
    return Object.assign(world.source({ ownerId, ...more }), { path, absolutePath: path });
  });
  const paths = sources.map(({ absolutePath }) => absolutePath);
  return sources.map((source) =>
    Object.assign(source, { innerFolders: innerFolders(source.absolutePath, paths) }),
  );
}
/** Each document of the service by owner, with its path below the source. */
const live = (): string[] =>
  world.service
    .live()
    .map(({ ownerId, description }) => `${ownerId} ${description}`)
    .toSorted();
const heldOf = () => readStatus(world.stateDir, 0)?.sources.map(({ held }) => held);
const removed = () => readStatus(world.stateDir, 0)?.removed;
const fill = (folder: string, count: number): void => {
  for (let n = 0; n < count; n += 1) world.write(`${folder}/${n}.md`, `text ${n} of ${folder}`);
};
const OUTER: Named = ["", "outer"];
const INNER: Named = ["team", "inner"];
const FILES = 60;
const owners = (): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { ownerId } of world.service.live()) counts[ownerId] = (counts[ownerId] ?? 0) + 1;
  return counts;
};

it("the files of an inner source belong to it alone, whichever is listed first", async () => {
  world.write("a.md", "of the outer one");
  world.write("team/b.md", "of the inner one");
  world.write("team/deep/er/c.md", "of the innermost one");
  const all = [INNER, OUTER, ["team/deep", "innermost"] as const];
  await world.sync({ sources: nested(...all) });
  const expected = ["inner b.md", "innermost er/c.md", "outer a.md"];
  expect(live().map((each) => each.replace(/(?<= ).*?(\S+\.md).*/, "$1"))).toEqual(expected);
  const activities = world.activity.length;
  await world.sync({ sources: nested(...all.toReversed()) });
  expect(world.activity).toHaveLength(activities);
});

describe("when sources are nested otherwise", () => {
  beforeEach(() => {
    fill("team", FILES);
    fill("other", 3);
  });

  it.each<[what: string, inner: Named]>([
    ["another owner", INNER],
    ["another tier", ["team", "outer", { collection: "moderate" }]],
    ["the same owner and tier", ["team", "outer"]],
    ["a path through a link", ["../link/team", "inner"]],
  ])("an inner source with %s takes its files over, and gives them back, once each", async (_, inner) => {
    symlinkSync(world.root, join(world.root, "../link"));
    await world.sync({ sources: nested(OUTER) });
    expect(owners()).toEqual({ outer: FILES + 3 });
    for (const sources of [nested(OUTER, inner), nested(OUTER), nested(inner, OUTER)]) {
      await world.sync({ sources });
      await world.sync({ sources });
      const expected =
        sources.length === 2 && inner[1] === "inner" ? { inner: FILES, outer: 3 } : { outer: FILES + 3 };
      expect(owners()).toEqual(expected);
      expect(heldOf()?.every((held) => held === 0)).toBe(true);
      expect(removed()).toEqual([]);
    }
    expect(new Set(world.service.live().map(({ content }) => content)).size).toBe(FILES + 3);
  });

  it("an inner source whose folder is missing keeps its documents, which the outer one does not touch", async () => {
    const sources = nested(OUTER, INNER);
    await world.sync({ sources });
    const before = live();
    renameSync(join(world.root, "team"), join(world.root, "..", "away"));
    await world.sync({ sources });
    expect(live()).toEqual(before);
  });

  it("the outer source sends nothing of an inner source's folder that was renamed, until that leaves", async () => {
    const sources = nested(OUTER, INNER);
    await world.sync({ sources });
    renameSync(join(world.root, "team"), join(world.root, "crew"));
    world.write("crew/new.md", "written since");
    await world.sync({ sources });
    expect(owners()).toEqual({ inner: FILES, outer: 3 });
    await world.sync({ sources: nested(OUTER, ["crew", "inner"]) });
    expect(owners()).toEqual({ inner: FILES + 1, outer: 3 });
    await world.sync({ sources: nested(OUTER) });
    expect(owners()).toEqual({ outer: FILES + 4 });
  });

  it("a configured inner source keeps its documents while only the outer one runs", async () => {
    const sources = nested(OUTER, INNER);
    await world.sync({ sources });
    const before = live();
    await world.sync({ sources: sources.slice(0, 1) });
    expect([live(), heldOf()]).toEqual([before, [0]]);
    await world.sync({ sources });
    expect(live()).toEqual(before);
  });

  it("what was deleted before a hand-over goes through the brakes of its new source", async () => {
    await world.sync({ sources: nested(OUTER) });
    rmSync(join(world.root, "team/0.md"));
    await world.sync({ sources: nested(OUTER, INNER) });
    expect(owners()).toEqual({ inner: FILES - 1, outer: 3 });
  });

  it.each([
    ["joins", "team/.kbsyncignore"],
    ["joins", "team/.gitignore"],
    ["joins", ".gitignore"],
    ["leaves", "team/.kbsyncignore"],
    ["leaves", "team/.gitignore"],
  ])(
    "as a source %s, nothing is sent that %s excludes, which is renamed away meanwhile",
    async (how, name) => {
      const settings = { settleMs: 100 };
      const timing = { changedRulesMs: 600 };
      const file = join(world.root, name);
      world.write(".git/HEAD", "ref: refs/heads/main");
      world.write(name, "secret/\n");
      world.write("team/secret/a.md", "the secret");
      const both = [nested(OUTER), nested(OUTER, INNER)];
      const [before = [], sources = []] = how === "joins" ? both : both.toReversed();
      await world.sync({ sources: before, settings, timing });
      renameSync(file, `${file}.bak`);
      const daemon = world.daemon({ sources, settings, timing });
      const syncing = daemon.syncOnce();
      await until(() => daemon.pulse().scan.moves > 0);
      renameSync(`${file}.bak`, file);
      await syncing;
      await daemon.close();
      expect(world.activity.filter(({ path }) => path.endsWith("secret/a.md"))).toEqual([]);
    },
  );

  it("a hand-over that is interrupted ends at the next start", async () => {
    await world.sync({ sources: nested(OUTER) });
    const daemon = world.daemon({ sources: nested(OUTER, INNER) });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    await until(() => (owners()["inner"] ?? 0) > FILES / 4);
    stopping.abort();
    await running;
    await world.sync({ sources: nested(OUTER, INNER) });
    expect(owners()).toEqual({ inner: FILES, outer: 3 });
  });
});

it("an inner source that takes files over from a paused one is paused, too", async () => {
  world.write("a.md", "of the outer one");
  world.write("team/b.md", "of the inner one");
  await world.sync({ sources: nested(OUTER) });
  await world.offline.pause();
  const before = live();
  await world.sync({ sources: nested(OUTER, INNER) });
  expect(live()).toEqual(before);
  await world.offline.resume();
  await world.sync({ sources: nested(OUTER, INNER) });
  expect(owners()).toEqual({ outer: 1, inner: 1 });
});

it("a source that hands all of its files over also leaves nothing of a create that no list showed", async () => {
  await world.end();
  let isShown = false;
  const first = (): string | undefined => [...world.service.resources.keys()][0];
  world = await openWorld({
    collections: true,
    listed: () => [...world.service.resources.values()].filter(({ _id }) => isShown || _id !== first()),
  });
  mkdirSync(join(world.root, "team"));
  await world.sync({ sources: nested(OUTER, INNER) });
  world.write("team/b.md", "of the inner one");
  let creates = 0;
  world.service.fault = ({ operation }) =>
    operation === "create" && (creates += 1) === 1 ? { kind: "lose-answer" } : undefined;
  await world.sync({ sources: nested(OUTER, INNER) });
  await world.sync({ sources: nested(OUTER) });
  expect(owners()).toEqual({ inner: 1, outer: 1 });
  expect(removed()).toEqual([]);
  isShown = true;
  await changeLedger(world.stateDir, async ({ contacts, sources, write }) => {
    const [inner] = [...sources.folders()].find(([, path]) => path === join(world.root, "team")) ?? [0];
    await write(() => contacts.setAgain(inner, { atMs: 0, round: 3 }));
  });
  await world.sync({ sources: nested(OUTER) });
  expect(owners()).toEqual({ outer: 1 });
});

it("a hand-over that ends amid unanswered creates is compared with the lists of both owners", async () => {
  fill("team", FILES);
  await world.sync({ sources: nested(OUTER) });
  let creates = 0;
  const answered = Promise.withResolvers<void>();
  world.service.fault = ({ operation }) =>
    operation === "create" && (creates += 1) > 5
      ? { kind: "answer-late", until: answered.promise }
      : undefined;
  const stopping = new AbortController();
  const running = world.daemon({ sources: nested(OUTER, INNER) }).run({ signal: stopping.signal });
  await until(() => creates > 8);
  stopping.abort();
  await running;
  answered.resolve();
  world.service.fault = () => undefined;
  await world.sync({ sources: nested(OUTER, INNER) });
  expect(owners()).toEqual({ inner: FILES });
});

it("explains a file by the innermost source", async () => {
  world.write("team/a.md", "of the inner one");
  const sources = nested(OUTER, INNER);
  await world.sync({ sources });
  const daemon = world.daemon({ sources });
  await daemon.syncOnce();
  const signal = AbortSignal.timeout(10_000);
  expect(await daemon.why(join(world.root, "team/a.md"), signal)).toMatchObject({
    source: join(world.root, "team"),
    path: "a.md",
    wanted: true,
    version: { state: "searchable" },
  });
  await daemon.close();
});
