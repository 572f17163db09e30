import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SINGLE_DELETES, until } from "../daemon/harness.ts";
import { openFollowed, type Followed } from "./followed.ts";

let followed: Followed;
afterEach(async () => {
  await followed.end();
});

/** Bytes that this process has read so far. */
const bytesRead = (): number => Number(/rchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);

/** The path of a file whose name is bytes. */
const raw = (folder: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${folder}/`), name]);

describe("names that are odd and UTF-8", () => {
  it("names that are odd and UTF-8 are synced, renamed and deleted as any other", async () => {
    const names = [
      "new\nline.txt",
      "tab\there.txt",
      "quote'\".txt",
      "-rf.txt",
      " .txt",
      "%41+&=?#.txt",
      "back\\slash.txt",
      "\u202Eright-to-left.txt",
      "\u{1F4C4}.txt",
      "\uFFFD.txt",
      `${"n".repeat(251)}.txt`,
      `${"ü".repeat(125)}x.txt`,
      `${"d".repeat(255)}/${"e".repeat(255)}/f.txt`,
    ];
    followed = await openFollowed(
      { "plain.txt": "plain" },
      { settings: { holdDeletesPercent: 100 }, timing: SINGLE_DELETES },
    );
    const { world, agrees, sent, ids, at } = followed;
    for (const name of names) world.write(name, `text of ${JSON.stringify(name)}`);
    await agrees();
    expect(Object.keys(ids())).toHaveLength(names.length + 1);
    expect(sent()).toEqual({ create: names.length });
    const before = Object.values(ids()).toSorted();
    renameSync(at("new\nline.txt"), at("other\r\nline.txt"));
    await agrees();
    expect(Object.values(ids()).toSorted()).toEqual(before);
    for (const name of names.slice(1)) rmSync(at(name));
    unlinkSync(at("other\r\nline.txt"));
    await agrees(() => ({ "plain.txt": "plain" }));
    expect(sent()).toEqual({ update: 1, delete: names.length });
  });

  it("names that differ in case alone are files of their own, whichever is renamed to whichever", async () => {
    followed = await openFollowed({ "A.txt": "upper", "a.txt": "lower" }, { timing: SINGLE_DELETES });
    const { at, agrees, sent, ids } = followed;
    const before = ids();
    renameSync(at("A.txt"), at("AA.txt"));
    renameSync(at("a.txt"), at("A.txt"));
    await agrees();
    expect(ids()).toEqual({ "AA.txt": before["A.txt"], "A.txt": before["a.txt"] });
    expect(sent()).toEqual({ update: 2 });
  });

  it("of two names that differ in composition alone, the second is skipped with its reason until a check finds the first renamed", async () => {
    followed = await openFollowed({ "\u00E9.txt": "composed" }, { timing: SINGLE_DELETES });
    const { world, at, agrees, sent, ids, daemon } = followed;
    const before = ids();
    world.write("e\u0301.txt", "apart");
    await until(() => daemon.status().sources[0]?.skipped === 1);
    expect(daemon.files({ state: "skipped", limit: 10 })).toMatchObject([
      { path: "e\u0301.txt", message: expect.stringContaining("composed") as string },
    ]);
    expect(sent()).toEqual({});
    renameSync(at("\u00E9.txt"), at("x.txt"));
    await until(() => "x.txt" in ids());
    await daemon.retry();
    await agrees();
    expect(ids()).toMatchObject({ "x.txt": before["\u00E9.txt"] });
  });
});

describe("names that are not UTF-8", () => {
  it("reports undecodable names as failed, finds them by rescan, and syncs them once they are renamed", async () => {
    followed = await openFollowed({ "a.txt": "a" }, { timing: SINGLE_DELETES });
    const { world, at, agrees, sent, daemon } = followed;
    const bad = raw(world.root, Buffer.from("b\xE4d.txt", "latin1"));
    const folder = raw(world.root, Buffer.from("f\xF6lder", "latin1"));
    writeFileSync(bad, "bad");
    mkdirSync(folder);
    writeFileSync(Buffer.concat([folder, Buffer.from("/x.txt")]), "elsewhere");
    await daemon.retry();
    await until(() => daemon.files({ limit: 10 }).length === 2);
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "b\uFFFDd.txt", message: expect.stringContaining("not valid UTF-8") as string },
      { path: "f\uFFFDlder", message: expect.stringContaining("not valid UTF-8") as string },
    ]);
    expect(sent()).toEqual({});
    renameSync(bad, at("good.txt"));
    renameSync(folder, at("folder"));
    await daemon.retry();
    await agrees();
    await until(() => daemon.files({ limit: 10 }).length === 0);
    expect(sent()).toEqual({ create: 2 });
  });
});

describe("what is no regular file", () => {
  it("what is no regular file is passed over while other files go on: a pipe, a socket, a device", async () => {
    followed = await openFollowed({ "a.txt": "a" }, { timing: SINGLE_DELETES });
    const { at, agrees, sent, world } = followed;
    expect(spawnSync("mkfifo", [at("pipe.txt")]).status).toBe(0);
    // Where no device may be made, as in a container, the others are tested.
    spawnSync("mknod", [at("null.txt"), "c", "1", "3"]);
    const server = createServer().listen(at("socket.txt"));
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      world.write("b.txt", "b");
      await agrees();
      expect(sent()).toEqual({ create: 1 });
      // A file that becomes a pipe is gone, and is not waited for.
      unlinkSync(at("a.txt"));
      spawnSync("mkfifo", [at("a.txt")]);
      await agrees(() => ({ "b.txt": "b" }));
      expect(sent()).toEqual({ delete: 1 });
    } finally {
      server.close();
    }
  });

  it("a file too large is refused before a byte is read, at its start as well as when it grows", async () => {
    followed = await openFollowed({ "a.txt": "a" }, { timing: SINGLE_DELETES });
    const { at, agrees, sent, daemon } = followed;
    writeFileSync(at("huge.txt"), "");
    truncateSync(at("huge.txt"), 10 * 1024 ** 3);
    const before = bytesRead();
    await until(() => daemon.files({ limit: 10 }).length === 1);
    expect(bytesRead() - before).toBeLessThan(1024 ** 3);
    expect(daemon.files({ limit: 10 })).toMatchObject([
      {
        path: "huge.txt",
        state: "failed",
        message: "10737418240 bytes, larger than maxFileBytes (33554432)",
      },
    ]);
    expect(sent()).toEqual({});
    writeFileSync(at("huge.txt"), "small by now");
    await agrees();
    // A known file that becomes too large keeps its resource, and the status says so.
    truncateSync(at("a.txt"), 10 * 1024 ** 3);
    await until(() => daemon.files({ limit: 10 }).some(({ path }) => path === "a.txt"));
    expect(followed.ids()["a.txt"]).toBeDefined();
    expect(sent()).toEqual({ create: 1 });
    truncateSync(at("a.txt"), 1);
    await agrees();
  });
});
