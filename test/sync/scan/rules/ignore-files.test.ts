import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon } from "../../../../src/sync/daemon.ts";
import { openWorld, until, type World } from "../../daemon/harness.ts";

/** A sent text cannot be taken back, so a person relies on this. */
const SECRET = "the secret";

let world: World;
let stop: (() => Promise<void>) | undefined;
beforeEach(async () => {
  world = await openWorld();
  world.write("open.md", "open");
  world.write("d/other.md", "other");
  world.write("d/secret/a.md", SECRET);
});
afterEach(async () => {
  await stop?.();
  stop = undefined;
  await world.end();
});

const settings = { settleMs: 100 };
/** Long enough for a test to restore a file in time on a busy machine. */
const timing = { changedRulesMs: 600 };
const put = (path: string, text: string): void => writeFileSync(join(world.root, path), text);
const sent = (): string[] =>
  world.activity.filter(({ action }) => action === "create").map(({ path }) => path);

async function run(): Promise<Daemon> {
  const daemon = world.daemon({ settings, timing });
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  stop = async () => {
    stopping.abort();
    await running;
  };
  await daemon.whenIdle();
  return daemon;
}

const agreed = async (daemon: Daemon, paths: readonly string[]): Promise<void> => {
  await until(
    () => {
      const titles = world.service.live().map(({ description }) => description);
      return daemon.status().idle && paths.every((path) => titles.some((title) => title.includes(path)));
    },
    () => JSON.stringify([daemon.status().sources, world.service.live()]),
    20_000,
  );
};

describe.each([
  ["at the root", ".kbsyncignore", "secret/\n"],
  ["in a folder", "d/.kbsyncignore", "secret/\n"],
])("an ignore file %s", (_, file, patterns) => {
  beforeEach(() => put(file, patterns));

  it("sends nothing that an ignore file excludes while it is rewritten in steps", async () => {
    const daemon = await run();
    for (const step of ["", "# header\n"]) {
      const { moves } = daemon.pulse().scan;
      put(file, step);
      await until(() => daemon.pulse().scan.moves > moves);
    }
    put(file, `# header\n${patterns}`);
    put("later.md", "later");
    await agreed(daemon, ["later.md"]);
    expect(sent()).not.toContain("d/secret/a.md");
    expect(world.service.live().map(({ content }) => content)).not.toContain(SECRET);
  });

  it("sends nothing that an ignore file excludes while it is renamed away, even in one pass", async () => {
    await world.sync({ settings, timing });
    renameSync(join(world.root, file), join(world.root, `${file}.bak`));
    const daemon = world.daemon({ settings, timing });
    const syncing = daemon.syncOnce();
    await until(() => daemon.pulse().scan.moves > 0);
    renameSync(join(world.root, `${file}.bak`), join(world.root, file));
    await syncing;
    await daemon.close();
    expect(sent().toSorted()).toEqual(["d/other.md", "open.md"]);
  });

  it("sends what an ignore file excluded once it is gone for good, in the same pass", async () => {
    await world.sync({ settings, timing });
    rmSync(join(world.root, file));
    await world.sync({ settings, timing });
    expect(sent().toSorted()).toEqual(["d/other.md", "d/secret/a.md", "open.md"]);
  });
});

it("does not mistake another folder for the source while an ignore file settles", async () => {
  await world.end();
  world = await openWorld();
  world.write("only.md", "only");
  put(".kbsyncignore", "secret/\n");
  await world.sync({ settings, timing });
  renameSync(world.root, `${world.root}-away`);
  mkdirSync(world.root);
  await world.sync({ settings, timing });
  expect(world.service.live()).toHaveLength(1);
  rmSync(world.root, { recursive: true });
  renameSync(`${world.root}-away`, world.root);
  await world.sync({ settings, timing });
  expect(world.activity.map(({ action }) => action)).toEqual(["create"]);
});

describe("an ignore file that cannot be read", () => {
  // A file of this size is not read.
  const LARGE = "#".repeat(2 * 1024 * 1024);

  it.each([
    ["at the root", ".kbsyncignore", /nothing of this source is sent or deleted/],
    ["in a folder", "d/.kbsyncignore", /nothing in its folder is sent or deleted/],
  ])("warns once of an unreadable ignore file with path, reason and remedy: %s", async (_, file, effect) => {
    const warnings: Error[] = [];
    put(file, LARGE);
    const daemon = world.daemon({ settings, timing, onWarning: (error) => warnings.push(error) });
    const stopping = new AbortController();
    const running = daemon.run({ signal: stopping.signal });
    stop = async () => {
      stopping.abort();
      await running;
    };
    await daemon.whenIdle();
    for (let look = 0; look < 2; look += 1) {
      await daemon.retry();
      await daemon.whenIdle();
    }
    const message = expect.stringMatching(effect) as string;
    expect(warnings).toMatchObject([
      {
        code: "ignore_unreadable",
        subject: join(world.root, file),
        message,
        hint: expect.stringContaining("remove") as string,
      },
    ]);
    expect(warnings[0]?.message).toContain("larger than 1 MB");
    expect(daemon.status().sources[0]?.warnings).toMatchObject([{ reason: message }]);
    rmSync(join(world.root, file));
    await agreed(daemon, ["d/secret/a.md"]);
    put(file, LARGE);
    await daemon.retry();
    await until(() => warnings.length === 2);
  });
});

it("neither sends nor deletes anything while an ignore file is not text", async () => {
  await world.sync({ settings, timing });
  rmSync(join(world.root, "open.md"));
  world.write("passwords.md", SECRET);
  writeFileSync(join(world.root, ".kbsyncignore"), Buffer.from("passw\u00F6rter\n", "latin1"));
  await world.sync({ settings, timing });
  expect(world.activity.map(({ action }) => action)).toEqual(["create", "create", "create"]);
  writeFileSync(join(world.root, ".kbsyncignore"), Buffer.from("\uFEFFpasswords.md\r\n", "utf16le"));
  await world.sync({ settings, timing });
  expect(world.activity.at(-1)).toMatchObject({ action: "delete", path: "open.md" });
  expect(sent()).not.toContain("passwords.md");
});

it("counts what is left out by rule, and lists it with file and line", async () => {
  put(".kbsyncignore", "secret/\n");
  world.write("node_modules/a/readme.md", "installed");
  world.write(".git/HEAD", "ref: refs/heads/main");
  world.write(".gitignore", "# what builds make\n*.log\n");
  world.write("a.log", "a log");
  const daemon = await run();
  expect(sent().toSorted()).toEqual(["d/other.md", "open.md"]);
  expect(daemon.status().sources[0]?.leftOut).toEqual(
    expect.arrayContaining([
      { reason: "left out by default: installed packages", files: 0, folders: 1, example: "node_modules" },
      { reason: "left out by `secret/` in .kbsyncignore:1", files: 0, folders: 1, example: "d/secret" },
      { reason: "left out by `*.log` in .gitignore:2", files: 1, folders: 0, example: "a.log" },
    ]),
  );
  const listed = await daemon.leftOut({ limit: 10 }, AbortSignal.timeout(10_000));
  expect(listed.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    ".git/: a hidden folder",
    ".gitignore: a hidden file",
    ".kbsyncignore: a hidden file",
    "a.log: left out by `*.log` in .gitignore:2",
    "d/secret/: left out by `secret/` in .kbsyncignore:1",
    "node_modules/: left out by default: installed packages",
  ]);
  const below = await daemon.leftOut({ limit: 10, path: join(world.root, "d") }, AbortSignal.timeout(10_000));
  expect(below.map(({ path }) => path)).toEqual(["d/secret/"]);
});

it("warns of a doubtful pattern before anything is sent", async () => {
  put(".kbsyncignore", "d\\secret\n");
  const sentBefore: string[] = [];
  const warnings: Error[] = [];
  const daemon = world.daemon({
    settings,
    timing,
    onWarning: (error) => {
      warnings.push(error);
      sentBefore.push(...sent());
    },
  });
  await daemon.syncOnce();
  expect(warnings).toMatchObject([{ code: "ignore_doubtful", subject: join(world.root, ".kbsyncignore") }]);
  expect(warnings[0]?.message).toContain("line 1, `d\\secret`, is read as `d\\secret` and as `d/secret`");
  expect(daemon.status().sources[0]?.warnings).toMatchObject([{ path: ".kbsyncignore" }]);
  await daemon.close();
  expect(sentBefore).toEqual([]);
  expect(sent().toSorted()).toEqual(["d/other.md", "open.md"]);
});
