import { mkdirSync, renameSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SourceStatus } from "../../../../src/wire/daemon-status.ts";
import type { Daemon, DaemonOptions } from "../../../../src/sync/daemon.ts";
import { REAL_WORLD } from "../../../../src/sync/daemon/options.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import { openWorld, until, type World } from "../harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

/** So low that a handful is a mass. */
const LIMITS = { holdDeletesOver: 5, holdDeletesPercent: 20 };
type More = Parameters<World["daemon"]>[0];

const fill = (count: number, folder = ""): void => {
  for (let index = 0; index < count; index += 1)
    world.write(`${folder}${index}.txt`, `text ${folder}${index}`);
};
const drop = (from: number, to: number): void => {
  for (let index = from; index < to; index += 1) unlinkSync(join(world.root, `${index}.txt`));
};
const sync = async (more: More = {}): Promise<SourceStatus | undefined> => {
  const daemon = world.daemon({ settings: LIMITS, ...more });
  try {
    return (await daemon.syncOnce()).status.sources[0];
  } finally {
    await daemon.close();
  }
};
const live = (): number => world.service.live().length;
const deletes = (): number => world.service.count("delete");
const watch = async (more: More = {}): Promise<{ daemon: Daemon; end: () => Promise<void> }> => {
  const daemon = world.daemon({ settings: LIMITS, ...more });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  await until(() => daemon.status().idle);
  return {
    daemon,
    end: async () => {
      stop.abort();
      await ended;
    },
  };
};
const state = (daemon: Daemon): SourceStatus | undefined => daemon.status().sources[0];

describe("rules that exclude many files", () => {
  beforeEach(async () => {
    fill(4, "keep/");
    fill(8, "drafts/");
    await sync();
  });

  it.each([
    { name: "exclude", fields: { exclude: ["drafts/**"] } },
    { name: "include", fields: { include: ["keep/**"] } },
  ])(
    "rules that exclude many files hold their deletes and are named as the reason: $name",
    async ({ fields }) => {
      const sources = [world.source(fields)];
      expect(await sync({ sources })).toMatchObject({
        held: 8,
        searchable: 4,
        halted: false,
        holdReason: "the rules leave out 8 files that were in agreement",
      });
      expect([live(), deletes()]).toEqual([12, 0]);
      // The old rules again: nothing has happened.
      const before = world.service.requests.length;
      expect(await sync()).toMatchObject({ held: 0, holdReason: null, searchable: 12 });
      expect(world.service.requests.length).toBe(before);
    },
  );

  it("an ignore file written while no daemon ran holds the deletes", async () => {
    world.write(".kbsyncignore", "drafts\n");
    expect(await sync()).toMatchObject({
      held: 8,
      holdReason: "the rules leave out 8 files that were in agreement",
    });
    await world.offline.approve();
    expect(await sync()).toMatchObject({ held: 0, holdReason: null, files: 4 });
    expect([live(), deletes()]).toEqual([4, 8]);
  });

  it("an ignore file written while the daemon watches holds the deletes", async () => {
    const { daemon, end } = await watch();
    world.write(".kbsyncignore", "drafts\n");
    await until(() => state(daemon)?.held === 8);
    expect(state(daemon)?.holdReason).toBe("the rules leave out 8 files that were in agreement");
    unlinkSync(join(world.root, ".kbsyncignore"));
    await until(() => state(daemon)?.held === 0 && daemon.status().idle);
    expect([live(), deletes()]).toEqual([12, 0]);
    await end();
  });

  it("rules that exclude everything are not mistaken for an emptied folder", async () => {
    world.write(".kbsyncignore", "*\n");
    expect(await sync()).toMatchObject({
      held: 12,
      holdReason: "the rules leave out 12 files that were in agreement",
    });
  });

  it("a lower size limit deletes nothing: the files are reported as failed", async () => {
    const sources = [world.source({ maxFileBytes: 3 })];
    expect(await sync({ sources })).toMatchObject({ held: 0, failed: 12 });
    expect([live(), deletes()]).toEqual([12, 0]);
    expect(await sync()).toMatchObject({ failed: 0, searchable: 12 });
  });
});

describe("approvals", () => {
  it("an approval covers what was held at the time, and not what goes later", async () => {
    fill(40);
    await sync();
    drop(0, 10);
    expect(await sync()).toMatchObject({ held: 10 });
    expect(await world.offline.approve()).toMatchObject([{ held: 10 }]);
    drop(10, 20);
    expect(await sync()).toMatchObject({ held: 10, holdReason: "10 deletes at once, 33 % of the source" });
    expect(live()).toBe(30);
    expect(world.service.live().map(({ title }) => title)).toContain("10.txt");
  });

  it("an approval of another root covers what was missing then", async () => {
    fill(4);
    await sync();
    renameSync(world.root, `${world.root}-old`);
    mkdirSync(world.root);
    world.write("new.txt", "new");
    expect(await sync()).toMatchObject({
      halted: true,
      held: 0,
      holdReason: "the folder was replaced by another one that holds none of its files",
    });
    expect(await world.offline.approve()).toMatchObject([{ held: 4 }]);
    expect(await sync()).toMatchObject({ halted: false, held: 0, files: 1 });
    expect(world.service.live()).toMatchObject([{ title: "new.txt" }]);
  });

  it("an approval of another root does not cover a third one", async () => {
    fill(4);
    await sync();
    renameSync(world.root, `${world.root}-old`);
    mkdirSync(world.root);
    world.write("new.txt", "new");
    await sync();
    await world.offline.approve();
    renameSync(world.root, `${world.root}-second`);
    mkdirSync(world.root);
    world.write("third.txt", "third");
    expect(await sync()).toMatchObject({ halted: true, held: 0 });
    expect([live(), deletes()]).toEqual([4, 0]);
    // It is not stored for later either.
    rmSync(world.root, { recursive: true });
    renameSync(`${world.root}-second`, world.root);
    expect(await sync()).toMatchObject({ halted: true, held: 0 });
  });

  it("a missing folder cannot be approved, whatever takes its place", async () => {
    fill(4);
    await sync();
    renameSync(world.root, `${world.root}-old`);
    expect(await sync()).toMatchObject({
      halted: true,
      holdReason: "the folder is missing or is not a folder",
    });
    expect(await world.offline.approve()).toEqual([]);
    await expect(world.offline.approve(world.root)).rejects.toThrow(/missing.*nobody can approve that/);
    mkdirSync(world.root);
    await sync();
    expect([live(), deletes()]).toEqual([4, 0]);
    rmdirSync(world.root);
    renameSync(`${world.root}-old`, world.root);
    expect(await sync()).toMatchObject({ halted: false, held: 0, searchable: 4 });
  });
});

describe("tokens", () => {
  const token = (): string => readStatus(world.stateDir, 0)?.sources[0]?.approval?.token ?? "none";

  it("a token approves what it was shown for, and is refused when more has joined", async () => {
    fill(40);
    await sync();
    drop(0, 10);
    const shown = (await sync())?.approval?.token ?? "none";
    expect(shown).toBe(token());
    expect((await sync())?.approval?.token).toBe(shown);
    drop(10, 30);
    expect(await sync()).toMatchObject({ held: 30 });
    await expect(world.offline.approve(undefined, shown)).rejects.toMatchObject({
      code: "approval_changed",
      subject: shown,
      message: expect.stringMatching(/nothing was approved: .* it is now .*: 30 deletes/) as string,
    });
    await expect(world.offline.approve(world.root, shown)).rejects.toMatchObject({
      code: "approval_changed",
    });
    await sync();
    expect([live(), deletes()]).toEqual([40, 0]);
    expect(await world.offline.approve(undefined, token())).toMatchObject([{ held: 30 }]);
    await sync();
    expect(live()).toBe(10);
  });

  it("a token changes when as many other files are held", async () => {
    fill(40);
    await sync();
    drop(0, 10);
    await sync();
    const shown = token();
    for (let index = 0; index < 10; index += 1) world.write(`${index}.txt`, `text ${index}`);
    drop(10, 20);
    expect(await sync()).toMatchObject({ held: 10 });
    expect(token()).not.toBe(shown);
  });

  it("a token of another root is not one of a third root", async () => {
    fill(4);
    await sync();
    renameSync(world.root, `${world.root}-old`);
    mkdirSync(world.root);
    expect(await sync()).toMatchObject({ halted: true, held: 0 });
    const shown = token();
    await sync();
    expect(token()).toBe(shown);
    renameSync(world.root, `${world.root}-second`);
    mkdirSync(world.root);
    expect(await sync()).toMatchObject({ halted: true, held: 0 });
    await expect(world.offline.approve(undefined, shown)).rejects.toMatchObject({ code: "approval_changed" });
  });

  it("a running daemon refuses a token, too, when more has joined", async () => {
    fill(40);
    const { daemon, end } = await watch();
    drop(0, 10);
    await until(() => state(daemon)?.held === 10 && daemon.status().idle);
    const shown = state(daemon)?.approval?.token ?? "none";
    drop(10, 30);
    await until(() => state(daemon)?.held === 30 && daemon.status().idle);
    await expect(daemon.approve(undefined, shown)).rejects.toMatchObject({ code: "approval_changed" });
    expect(await daemon.approve(world.root, state(daemon)?.approval?.token ?? "none")).toMatchObject([
      { held: 30 },
    ]);
    await until(() => live() === 10 && daemon.status().idle);
    expect(state(daemon)?.approval).toBeNull();
    await end();
  });
});

describe("held deletes", () => {
  it("held deletes keep their reason while the folder is missing for a time", async () => {
    fill(20);
    await sync();
    drop(0, 10);
    const reason = "10 deletes at once, 50 % of the source";
    expect(await sync()).toMatchObject({ held: 10, holdReason: reason });
    renameSync(world.root, `${world.root}-away`);
    // Only what a person could approve is held; nobody knows whether the rest is gone.
    expect(await sync()).toMatchObject({
      halted: true,
      held: 10,
      holdReason: "the folder is missing or is not a folder",
      remedy: expect.stringContaining("put it back") as string,
    });
    renameSync(`${world.root}-away`, world.root);
    expect(await sync()).toMatchObject({ halted: false, held: 10, holdReason: reason });
  });

  it("held deletes count across many passes and restarts", async () => {
    fill(20);
    await sync();
    for (let index = 0; index < 9; index += 1) {
      drop(index, index + 1);
      await sync();
    }
    expect(live()).toBe(15);
    expect(await sync()).toMatchObject({ held: 4 });
    expect(await world.offline.approve()).toMatchObject([
      { reason: expect.stringMatching(/after 5 within 10 minutes, \d+ % of the source/) as string },
    ]);
  });

  it("held deletes include the last file of the folder, found missing by itself", async () => {
    fill(2);
    const { daemon, end } = await watch();
    drop(0, 2);
    await until(() => state(daemon)?.held === 2 && daemon.status().idle);
    world.write("1.txt", "written again");
    await until(() => state(daemon)?.held === 1 && daemon.status().idle);
    drop(1, 2);
    await until(() => state(daemon)?.held === 2 || deletes() > 0);
    expect([state(daemon)?.holdReason, deletes()]).toEqual(["the folder was emptied", 0]);
    await end();
  });

  it("a held file is sent when it returns, if the service never had its last version", async () => {
    fill(6, "d/");
    await sync();
    world.service.fault = ({ operation }) =>
      operation === "update" ? { kind: "answer", status: 500, body: "{}" } : undefined;
    world.write("d/0.txt", "edited, and never sent");
    expect(await sync()).toMatchObject({ waiting: 1 });
    world.service.fault = () => undefined;
    renameSync(join(world.root, "d"), `${world.root}-d`);
    expect(await sync()).toMatchObject({ held: 6 });
    renameSync(`${world.root}-d`, join(world.root, "d"));
    expect(await sync()).toMatchObject({ held: 0, searchable: 6 });
    expect(world.service.live().map(({ content }) => content)).toContain("edited, and never sent");
    expect(world.service.count("create")).toBe(6);
  });
});

describe("a small folder", () => {
  it("a small folder holds the deletes of most of its files, whatever came first", async () => {
    fill(40);
    const { daemon, end } = await watch({ settings: {} });
    drop(0, 12);
    await until(() => !daemon.status().idle);
    drop(12, 39);
    await until(() => state(daemon)?.held === 39 && daemon.status().idle);
    expect(state(daemon)?.holdReason).toBe("39 deletes at once, 98 % of the source");
    expect([live(), deletes()]).toEqual([40, 0]);
    await end();
  });
});

describe("files in trouble whose resources are there", () => {
  it("an emptied folder includes files whose last update was refused", async () => {
    fill(8);
    await sync();
    world.service.fault = ({ operation }) =>
      operation === "update" ? { kind: "answer", status: 422, body: "{}" } : undefined;
    for (let index = 0; index < 8; index += 1) world.write(`${index}.txt`, `edited ${index}`);
    expect(await sync()).toMatchObject({ failed: 8 });
    world.service.fault = () => undefined;
    drop(0, 8);
    expect(await sync({ settings: {} })).toMatchObject({ held: 8, holdReason: "the folder was emptied" });
    expect([live(), deletes()]).toEqual([8, 0]);
  });

  it("a folder of which some files failed is not one that is hardly touched", async () => {
    fill(20);
    await sync();
    world.service.fault = ({ operation }) =>
      operation === "update" ? { kind: "answer", status: 422, body: "{}" } : undefined;
    for (let index = 0; index < 15; index += 1) world.write(`${index}.txt`, `edited ${index}`);
    await sync();
    world.service.fault = () => undefined;
    drop(0, 8);
    expect(await sync()).toMatchObject({ held: 8, holdReason: "8 deletes at once, 40 % of the source" });
  });
});

describe("a daemon that watches", () => {
  it("a running daemon continues by itself when the right folder is back", async () => {
    fill(4);
    const { daemon, end } = await watch();
    renameSync(world.root, `${world.root}-away`);
    await until(() => state(daemon)?.halted === true);
    mkdirSync(world.root);
    writeFileSync(join(world.root, "stray.txt"), "stray");
    await until(
      () => /replaced/.test(state(daemon)?.holdReason ?? ""),
      () => `another root, not: ${state(daemon)?.holdReason}`,
      30_000,
    );
    expect(deletes()).toBe(0);
    rmSync(world.root, { recursive: true });
    renameSync(`${world.root}-away`, world.root);
    world.write("new.txt", "written when it was back");
    await until(
      () => live() === 5 && state(daemon)?.halted === false,
      () => JSON.stringify(state(daemon)),
      30_000,
    );
    expect(deletes()).toBe(0);
    await end();
  }, 90_000);

  it("a running daemon holds a mass, performs it when a person agrees, and then the next single delete at once", async () => {
    fill(20);
    const { daemon, end } = await watch();
    drop(0, 10);
    await until(() => state(daemon)?.held === 10 && daemon.status().idle);
    expect([live(), deletes()]).toEqual([20, 0]);
    expect(await daemon.approve()).toMatchObject([{ held: 10 }]);
    await until(() => live() === 10 && daemon.status().idle);
    drop(10, 11);
    await until(
      () => live() === 9,
      () => JSON.stringify(state(daemon)),
    );
    expect(state(daemon)).toMatchObject({ held: 0, holdReason: null });
    await end();
  });
});

/** Watches nothing; returns the function that reports a path as changed. */
const watchByHand = async () => {
  let hint: (path: string | undefined) => void = () => undefined;
  const deaf: DaemonOptions["world"] = {
    ...REAL_WORLD,
    watch: ({ onDirty, onReady }) => {
      hint = onDirty;
      onReady();
      return Promise.resolve({
        degraded: () => undefined,
        renew: () => undefined,
        close: () => Promise.resolve(),
      });
    },
  };
  return { ...(await watch({ world: deaf })), hint: (path: string) => hint(path) };
};

it("another folder in the place of a watched one is not accepted by a check of one new file", async () => {
  fill(8);
  await sync();
  const { daemon, end, hint } = await watchByHand();
  try {
    renameSync(world.root, `${world.root}-before`);
    mkdirSync(world.root);
    writeFileSync(join(world.root, "new.txt"), "new");
    hint("new.txt");
    await until(() => state(daemon)?.halted === true || live() === 9);
    expect(state(daemon)?.holdReason).toContain("was replaced");
    expect([live(), deletes()]).toEqual([8, 0]);
  } finally {
    await end();
  }
});

it("another folder in the place of one whose only file is being created is not accepted", async () => {
  await world.end();
  world = await openWorld({ collections: true });
  await sync();
  const { daemon, end, hint } = await watchByHand();
  const answered = Promise.withResolvers<void>();
  try {
    world.service.fault = ({ operation }) =>
      operation === "create" ? { kind: "answer-late", until: answered.promise } : undefined;
    world.write("a.txt", "of a");
    hint("a.txt");
    await until(() => live() === 1);
    renameSync(world.root, `${world.root}-before`);
    mkdirSync(world.root);
    writeFileSync(join(world.root, "new.txt"), "new");
    hint("new.txt");
    await until(() => state(daemon)?.halted === true || world.service.count("create") === 2);
    answered.resolve();
    await until(() => daemon.status().idle);
    expect(state(daemon)?.holdReason).toContain("was replaced");
    expect([live(), deletes()]).toEqual([1, 0]);
  } finally {
    answered.resolve();
    await end();
  }
});

it("a file renamed onto the path of a held delete keeps its resource, and the delete stays held until a person agrees", async () => {
  fill(20);
  await sync();
  const idOf = (title: string): string | undefined =>
    world.service.live().find((each) => each.title === title)?._id;
  const [first, kept] = [idOf("0.txt"), idOf("19.txt")];
  drop(0, 12);
  expect(await sync()).toMatchObject({ held: 12 });
  renameSync(join(world.root, "19.txt"), join(world.root, "0.txt"));
  expect(await sync()).toMatchObject({ held: 12, searchable: 8 });
  expect([deletes(), live()]).toEqual([0, 20]);
  await world.offline.approve();
  expect(await sync()).toMatchObject({ held: 0, searchable: 8 });
  expect([live(), idOf("0.txt")]).toEqual([8, kept]);
  expect(first).not.toBe(kept);
});
