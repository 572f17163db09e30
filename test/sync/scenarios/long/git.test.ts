import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { folderTexts, LONG_PATIENCE_MS, openFollowed, type Followed } from "../followed.ts";

let followed: Followed;
afterEach(async () => {
  await followed.end();
});

const hasGit = spawnSync("git", ["--version"]).status === 0;
const FILES = 3000;

/** Runs git in the watched folder, as nobody in particular. */
function git(...args: readonly string[]): void {
  const who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null"];
  const { status, stderr } = spawnSync("git", [...who, ...args], {
    cwd: followed.world.root,
    encoding: "utf8",
  });
  expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
}

describe.skipIf(!hasGit)("git (skipped where it is not installed)", () => {
  it("a checkout of branches with thousands of files sends what differs, and no more", async () => {
    followed = await openFollowed({}, { settleMs: 150, patienceMs: LONG_PATIENCE_MS });
    const { world, at, agrees, sent, ids } = followed;
    git("init", "-q", "-b", "main");
    for (let n = 0; n < FILES; n++) world.write(`d${n % 30}/f${n}.txt`, `text ${n}`);
    git("add", "-A");
    git("commit", "-q", "-m", "first");
    await agrees();
    expect(sent()).toMatchObject({ create: FILES });
    const first = ids();

    // Another branch: a tenth changed, a folder renamed, a folder of new files.
    git("checkout", "-q", "-b", "other");
    for (let n = 0; n < FILES; n += 10) world.write(`d${n % 30}/f${n}.txt`, `text ${n}, of the other branch`);
    renameSync(at("d1"), at("moved"));
    mkdirSync(at("new"));
    for (let n = 0; n < 40; n++) writeFileSync(join(at("new"), `n${n}.txt`), `new ${n}`);
    git("add", "-A");
    git("commit", "-q", "-m", "second");
    await agrees();
    expect(sent()).toEqual({ create: 40, update: FILES / 10 + FILES / 30 });
    const second = ids();

    // Back: git writes what differs again, so every inode of it is another one. The moved folder is recognised by its content.
    git("checkout", "-q", "main");
    await agrees();
    expect(sent()).toEqual({ delete: 40, update: FILES / 10 + FILES / 30 });
    expect(ids()).toEqual(first);
    git("checkout", "-q", "other");
    await agrees();
    const { create = 0, update = 0, ...others } = sent();
    expect([create, update, others]).toEqual([40, FILES / 10 + FILES / 30, {}]);
    const old = ([path]: [string, string]): boolean => !path.startsWith("new/");
    expect(Object.entries(ids()).filter(old)).toEqual(Object.entries(second).filter(old));
  });

  it("rewriting every file with the same text sends nothing", async () => {
    followed = await openFollowed({}, { settleMs: 150, patienceMs: LONG_PATIENCE_MS });
    const { world, agrees, sent, daemon } = followed;
    git("init", "-q", "-b", "main");
    for (let n = 0; n < FILES; n++) world.write(`d${n % 30}/f${n}.txt`, `text ${n}`);
    git("add", "-A");
    git("commit", "-q", "-m", "first");
    await agrees();
    sent();
    const before = followed.ids();
    // All at once: between the two the folder holds hidden files alone, for less than the settle time or for more.
    for (const name of Object.keys(folderTexts(world.root))) rmSync(join(world.root, name));
    git("checkout", "-q", "--", ".");
    await daemon.retry();
    await agrees();
    await daemon.retry();
    await agrees();
    expect(sent()).toEqual({});
    expect(followed.ids()).toEqual(before);
  });
});
