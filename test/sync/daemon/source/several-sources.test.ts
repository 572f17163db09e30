import { existsSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon, DaemonOptions, PassResult } from "../../../../src/sync/daemon.ts";
import type { WatchedSource } from "../../../../src/sync/scan/rules/rules.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import { openWorld, until, type World } from "../harness.ts";

let world: World;
let base: string;
beforeEach(async () => {
  world = await openWorld();
  base = dirname(world.root);
});
afterEach(async () => {
  await world.end();
});

/** A source at a folder next to the world's own. */
const at = (name: string, more: Record<string, unknown> = {}): WatchedSource => ({
  ...world.source({ ownerId: "owner", ...more }),
  path: join(base, name),
  absolutePath: join(base, name),
});
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), text);
};
const sync = async (
  sources: readonly WatchedSource[],
  more: Partial<DaemonOptions> & { settings?: Record<string, unknown> } = {},
): Promise<PassResult["status"]> => {
  const daemon = world.daemon({ sources, ...more });
  try {
    return (await daemon.syncOnce()).status;
  } finally {
    await daemon.close();
  }
};
const live = (): string[] => world.service.live().map(({ ownerId, title }) => `${ownerId} ${title}`);
const ids = (): string[] =>
  world.service
    .live()
    .map(({ _id }) => _id)
    .toSorted();
const removed = () => readStatus(world.stateDir, 0)?.removed;
/** A daemon that watches; `end` stops it. */
const watch = (sources: readonly WatchedSource[]): { daemon: Daemon; end: () => Promise<void> } => {
  const daemon = world.daemon({ sources });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  return {
    daemon,
    end: async () => {
      stop.abort();
      await ended;
    },
  };
};

describe("several sources", () => {
  it("several sources have owner, tier and rules of their own", async () => {
    write("a/x.txt", "ax");
    write("a/y.log", "ay");
    write("b/x.txt", "bx");
    const sources = [
      at("a", { ownerId: "anna", exclude: ["*.log"] }),
      at("b", { ownerId: "ben", collection: "moderate", settings: { chunkSize: 500 } }),
    ];
    await sync(sources);
    expect(live().toSorted()).toEqual(["anna x.txt", "ben x.txt"]);
    const [a, b] = ["anna", "ben"].map((owner) =>
      world.service.live().find(({ ownerId }) => ownerId === owner),
    );
    expect(a?.collectionId).not.toBe(b?.collectionId);
    expect(b?.settings).toMatchObject({ chunkSize: 500 });
    const before = world.service.requests.length;
    await sync(sources);
    expect(world.service.requests.length).toBe(before);
  });

  it("several sources give the same file of one owner a resource each, and delete only the one that goes", async () => {
    write("a/same.txt", "the same text");
    write("b/same.txt", "the same text");
    const sources = [at("a"), at("b")];
    await sync(sources);
    expect(live()).toEqual(["owner same.txt", "owner same.txt"]);
    const before = ids();
    unlinkSync(join(base, "a/same.txt"));
    await sync(sources);
    expect(ids()).toHaveLength(1);
    expect(before).toContain(ids()[0]);
    write("b/same.txt", "another text");
    await sync(sources);
    expect(world.service.live()).toMatchObject([{ content: "another text" }]);
  });

  it("several sources are halted independently", async () => {
    for (const name of ["a/1.txt", "a/2.txt", "b/1.txt"]) write(name, name);
    await sync([at("a"), at("b")]);
    renameSync(join(base, "a"), join(base, "away"));
    write("b/2.txt", "new");
    const status = await sync([at("a"), at("b")]);
    expect(status.sources).toMatchObject([
      { halted: true, searchable: 0, waiting: 2 },
      { halted: false, searchable: 2 },
    ]);
    expect(world.service.count("delete")).toBe(0);
  });
});

describe("another owner or tier in the configuration", () => {
  it.each([
    { name: "owner", change: { ownerId: "other" } },
    { name: "tier", change: { collection: "moderate" } },
  ])("another owner or tier replaces every resource without a gap: $name", async ({ change }) => {
    for (let index = 0; index < 8; index += 1) write(`a/${index}.txt`, `text ${index}`);
    await sync([at("a")]);
    let least = 8;
    world.service.fault = () => {
      least = Math.min(least, new Set(world.service.live().map(({ title }) => title)).size);
      return undefined;
    };
    await sync([at("a", change)]);
    expect(least).toBe(8);
    expect(world.service.live()).toHaveLength(8);
    const places = new Set(
      world.service.live().map(({ ownerId, collectionId }) => `${ownerId} ${collectionId}`),
    );
    expect(places.size).toBe(1);
    const before = world.service.requests.length;
    await sync([at("a", change)]);
    expect(world.service.requests.length).toBe(before);
  });

  it("another owner or tier is completed after a crash in the middle, exactly once", async () => {
    for (let index = 0; index < 6; index += 1) write(`a/${index}.txt`, `text ${index}`);
    await sync([at("a")]);
    let effects = 0;
    const crash = sync([at("a", { ownerId: "other" })], {
      step: () => {
        effects += 1;
        if (effects > 24) throw new Error("crash");
      },
    });
    await expect(crash).rejects.toThrow("crash");
    await sync([at("a", { ownerId: "other" })]);
    expect(live()).toEqual([0, 1, 2, 3, 4, 5].map((index) => `other ${index}.txt`));
  });
});

describe("a source that leaves the configuration", () => {
  beforeEach(async () => {
    for (const name of ["a/1.txt", "a/2.txt", "a/3.txt", "b/1.txt"]) write(name, name);
    await sync([at("a"), at("b")]);
  });

  it("a removed source keeps its resources and is reported", async () => {
    const status = await sync([at("b")]);
    expect(status.removed).toMatchObject([
      { path: join(base, "a"), ownerId: "owner", resources: 3, approved: false },
    ]);
    expect(status.sources).toHaveLength(1);
    expect([live().length, world.service.count("delete")]).toEqual([4, 0]);
    expect(removed()).toEqual(status.removed);
  });

  it("a removed source continues unchanged when it is configured again", async () => {
    await sync([at("b")]);
    const before = world.service.requests.length;
    await sync([at("a"), at("b")]);
    expect(world.service.requests.length).toBe(before);
    expect(removed()).toEqual([]);
  });

  it("a removed source is not approved along with everything else", async () => {
    await sync([at("b")]);
    expect(await world.offline.approve()).toEqual([]);
    await sync([at("b")]);
    expect(world.service.count("delete")).toBe(0);
  });

  it.each([
    { name: "its folder still exists", before: () => undefined },
    { name: "its folder is gone", before: () => rmSync(join(base, "a"), { recursive: true }) },
  ])(
    "a removed source loses its resources, each once, when a person approves it by name: $name",
    async ({ before }) => {
      await sync([at("b")]);
      before();
      expect(await world.offline.approve(join(base, "a"))).toMatchObject([
        { source: join(base, "a"), held: 3, reason: "removed from the configuration" },
      ]);
      const status = await sync([at("b")]);
      expect([live(), world.service.count("delete")]).toEqual([["owner 1.txt"], 3]);
      expect(status.removed).toEqual([]);
      await sync([at("b")]);
      expect(world.service.count("delete")).toBe(3);
      expect(world.service.live()[0]?.content).toBe("b/1.txt");
    },
  );

  it("a removed source loses its resources by an approval with its token alone, and by none without a token", async () => {
    await sync([at("b")]);
    expect(await world.offline.approve()).toEqual([]);
    const token = removed()?.[0]?.approval?.token ?? "";
    expect(await world.offline.approve(undefined, token)).toMatchObject([
      { source: join(base, "a"), held: 3 },
    ]);
    await sync([at("b")]);
    expect(live()).toEqual(["owner 1.txt"]);
  });

  it("a dry run reports a removed source when its removal is approved, and not before", async () => {
    await sync([at("b")]);
    const plan = async (sources: readonly WatchedSource[]): Promise<string[] | undefined> => {
      const daemon = world.daemon({ sources });
      const { planned } = await daemon.syncOnce({ dryRun: true });
      await daemon.close();
      return planned?.map(({ action, path }) => `${action} ${path}`).toSorted();
    };
    expect(await plan([at("b")])).toEqual([]);
    await world.offline.approve(join(base, "a"));
    expect(await plan([at("b")])).toEqual(["delete 1.txt", "delete 2.txt", "delete 3.txt"]);
    expect(await plan([at("a"), at("b")])).toEqual([]);
    expect(world.service.count("delete")).toBe(0);
  });

  it("a removed source is removed although it was the only one", async () => {
    await sync([at("b")]);
    await world.offline.approve(join(base, "a"));
    await sync([]);
    expect(live()).toEqual(["owner 1.txt"]);
    expect(removed()).toMatchObject([{ path: join(base, "b"), resources: 1 }]);
  });

  it("a running daemon removes a removed source", async () => {
    const { daemon, end } = watch([at("b")]);
    await until(() => daemon.status().idle);
    expect(await daemon.approve(join(base, "a"))).toMatchObject([{ held: 3 }]);
    await until(() => live().length === 1 && daemon.status().idle);
    expect(daemon.status().removed).toEqual([]);
    await end();
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    "a removed source is removed completely after a crash at effect %i",
    async (crashAt) => {
      await sync([at("b")]);
      await world.offline.approve(join(base, "a"));
      let effects = 0;
      const step = (): void => {
        effects += 1;
        if (effects >= crashAt) throw new Error("crash");
      };
      await sync([at("b")], { step }).catch(() => undefined);
      await sync([at("b")]);
      expect(live()).toEqual(["owner 1.txt"]);
      expect(removed()).toEqual([]);
      expect(world.service.live()[0]?.content).toBe("b/1.txt");
    },
  );

  it("configuring a source again voids its removal, and creates again what was deleted before", async () => {
    await sync([at("b")]);
    await world.offline.approve(join(base, "a"));
    await sync([at("a"), at("b")]);
    expect([live().length, world.service.count("delete")]).toEqual([4, 0]);
    await sync([at("b")]);
    expect(removed()).toMatchObject([{ resources: 3, approved: false }]);
  });

  it("a removed source's interrupted create has its resource deleted as well", async () => {
    write("a/4.txt", "cut off");
    world.service.fault = ({ operation }) => (operation === "create" ? { kind: "lose-answer" } : undefined);
    await sync([at("a"), at("b")], {
      step: (name) => {
        if (name === "create:answered") throw new Error("crash");
      },
    }).catch(() => undefined);
    world.service.fault = () => undefined;
    expect(live()).toHaveLength(5);
    await sync([at("b")]);
    expect(removed()).toMatchObject([{ resources: 3 }]);
    await world.offline.approve(join(base, "a"));
    await sync([at("b")]);
    expect(live()).toEqual(["owner 1.txt"]);
  });

  it("a removed source keeps retrying deletes that the service refuses", async () => {
    await sync([at("b")]);
    await world.offline.approve(join(base, "a"));
    let refusals = 0;
    world.service.fault = ({ operation }) => {
      if (operation !== "delete") return undefined;
      refusals += 1;
      return { kind: "answer", status: 409, body: '{"success":false,"message":"in use"}' };
    };
    await sync([at("b")]);
    expect([refusals, live().length]).toEqual([3, 4]);
    expect(removed()).toMatchObject([{ resources: 3, approved: true }]);
    world.service.fault = () => undefined;
    await sync([at("b")]);
    expect(live()).toEqual(["owner 1.txt"]);
  });
});

describe("a source whose folder has another path in the configuration", () => {
  beforeEach(async () => {
    for (let index = 0; index < 5; index += 1) write(`a/d/${index}.txt`, `text ${index}`);
    write("a/top.txt", "top");
    await sync([at("a")]);
  });

  it("a moved source keeps every id when the folder was renamed", async () => {
    const before = ids();
    const requests = world.service.requests.length;
    renameSync(join(base, "a"), join(base, "renamed"));
    const status = await sync([at("renamed")]);
    expect(ids()).toEqual(before);
    expect(world.service.requests.length).toBe(requests);
    expect(status).toMatchObject({ removed: [], sources: [{ searchable: 6, files: 6 }] });
  });

  it("a moved source is reported by a dry run", async () => {
    renameSync(join(base, "a"), join(base, "renamed"));
    const daemon = world.daemon({ sources: [at("renamed")] });
    const { planned } = await daemon.syncOnce({ dryRun: true });
    await daemon.close();
    expect(planned).toEqual([]);
    expect(existsSync(join(base, "renamed"))).toBe(true);
  });

  it("a source is another one when the old folder still exists", async () => {
    mkdirSync(join(base, "new"));
    write("new/top.txt", "top");
    const status = await sync([at("new")]);
    expect(status.removed).toMatchObject([{ path: join(base, "a"), resources: 6 }]);
    expect(world.service.live()).toHaveLength(7);
  });

  it("a source is another one under another owner", async () => {
    renameSync(join(base, "a"), join(base, "renamed"));
    const status = await sync([at("renamed", { ownerId: "other" })]);
    expect(status.removed).toMatchObject([{ resources: 6 }]);
    expect([world.service.live().length, world.service.count("delete")]).toEqual([12, 0]);
  });

  it("a source is found again that was removed before under its new path", async () => {
    write("renamed/old.txt", "an old source");
    await sync([at("a"), at("renamed")]);
    await sync([at("a")]);
    await world.offline.approve(join(base, "renamed"));
    await sync([at("a")]);
    rmSync(join(base, "renamed"), { recursive: true });
    renameSync(join(base, "a"), join(base, "renamed"));
    const before = ids();
    await sync([at("renamed")]);
    expect(ids()).toEqual(before);
  });
});

it("a new source does not take what another source of its owner has in flight", async () => {
  await world.end();
  world = await openWorld({ collections: true });
  base = dirname(world.root);
  write("a/licence.txt", "the same words in both");
  write("a/own.txt", "of the first alone");
  write("b/licence.txt", "the same words in both");
  const made = Promise.withResolvers<void>();
  const listed = Promise.withResolvers<void>();
  let lists = 0;
  let creates = 0;
  world.service.fault = ({ operation, body }) => {
    if (operation === "list") lists += 1;
    // The first source listed twice.
    if (operation === "list" && lists === 3) return { kind: "wait", until: made.promise };
    if (operation !== "create") return undefined;
    creates += 1;
    if (lists >= 3 && creates > 1) listed.resolve();
    if (body?.["title"] !== "licence.txt" || creates > 1) return undefined;
    made.resolve();
    return { kind: "answer-late", until: listed.promise };
  };
  const status = await sync([at("b"), at("a")], { settings: { concurrency: 8 } });
  expect(status.sources.map(({ searchable, failed }) => [searchable, failed])).toEqual([
    [1, 0],
    [2, 0],
  ]);
  expect(live().toSorted()).toEqual(["owner licence.txt", "owner licence.txt", "owner own.txt"]);
});

it("two sources of one owner that were making equal files in a crash end with one resource each", async () => {
  const sources = [at("a"), at("b")];
  write("a/own.txt", "of a");
  write("b/own.txt", "of b");
  await sync(sources);
  write("a/licence.txt", "the same words in both");
  write("b/licence.txt", "the same words in both");
  let crashed = false;
  const crash = (name: string): void => {
    crashed ||= name === "create:answered";
    if (crashed) throw new Error("crash");
  };
  await sync(sources, { step: crash }).catch(() => undefined);
  expect(crashed).toBe(true);
  await sync(sources);
  expect(live().filter((each) => each.endsWith("licence.txt"))).toHaveLength(2);
});

it("an audit of one source says nothing of another one of its owner", async () => {
  const sources = [at("a"), at("b")];
  write("a/a.txt", "of a");
  write("b/b.txt", "of b");
  await sync(sources);
  const lost = world.service.live().find(({ title }) => title === "b.txt");
  if (lost !== undefined) lost.isDeleted = true;
  const { url, key: pauthkey } = world.service;
  const daemon = world.daemon({ sources, service: { apiUrl: url, dbUrl: url, pauthkey, listLagMs: 0 } });
  const one = await daemon.audit({ folder: join(base, "a") });
  const other = await daemon.audit({ folder: join(base, "b") });
  await daemon.close();
  expect([one.findings.length, one.agrees, other.findings.length, other.agrees]).toEqual([0, true, 1, false]);
});
