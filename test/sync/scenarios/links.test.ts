import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { startOwnThreads } from "../../idle-threads.ts";
import { SINGLE_DELETES, until } from "../daemon/harness.ts";
import { makeTree, removeTree } from "../scan/tree.ts";
import { openFollowed, type Followed } from "./followed.ts";

let followed: Followed | undefined;
afterEach(async () => {
  await followed?.end();
  followed = undefined;
});

/** A folder whose links are followed. */
async function openLinked(
  files: Record<string, string>,
  links: Record<string, string> = {},
): Promise<Followed> {
  followed = await openFollowed(files, { source: { followSymlinks: true }, timing: SINGLE_DELETES });
  for (const [path, to] of Object.entries(links)) symlinkSync(to, followed.at(path));
  return followed;
}

describe("symbolic links", () => {
  startOwnThreads();

  it("leaves links out by default, reports them, and deletes the resource of a file that becomes a link", async () => {
    const elsewhere = makeTree({ "secret.txt": "secret" });
    try {
      followed = await openFollowed({ "a.txt": "a", "b.txt": "b" }, { timing: SINGLE_DELETES });
      const { at, agrees, sent, daemon } = followed;
      symlinkSync(join(elsewhere, "secret.txt"), at("out.txt"));
      symlinkSync(elsewhere, at("folder"));
      symlinkSync("a.txt", at("in.txt"));
      await until(() => daemon.status().sources[0]?.skipped === 3);
      expect(daemon.files({ state: "skipped", limit: 10 })).toMatchObject([
        { path: "folder", message: expect.stringContaining("not followed") as string },
        { path: "in.txt" },
        { path: "out.txt" },
      ]);
      expect(sent()).toEqual({});
      unlinkSync(at("b.txt"));
      symlinkSync("a.txt", at("b.txt"));
      await agrees(() => ({ "a.txt": "a" }));
      expect(sent()).toEqual({ delete: 1 });
      for (const name of ["out.txt", "folder", "in.txt"]) unlinkSync(at(name));
      await until(() => (daemon.status().sources[0]?.skipped ?? 9) <= 1);
      expect(sent()).toEqual({});
    } finally {
      removeTree(elsewhere);
    }
  });

  it("symbolic links that are followed are documents of their own, and follow what they lead to", async () => {
    const { at, agrees, sent, ids } = await openLinked({ "d/a.txt": "one", "d/e/b.txt": "b" });
    symlinkSync("d/a.txt", at("l.txt"));
    symlinkSync("d", at("f"));
    await agrees(() => ({
      "d/a.txt": "one",
      "d/e/b.txt": "b",
      "l.txt": "one",
      "f/a.txt": "one",
      "f/e/b.txt": "b",
    }));
    expect(sent()).toEqual({ create: 3 });
    const before = ids();
    writeFileSync(at("d/a.txt"), "two, longer");
    writeFileSync(at("d/e/new.txt"), "new");
    const after = {
      "d/a.txt": "two, longer",
      "d/e/b.txt": "b",
      "d/e/new.txt": "new",
      "l.txt": "two, longer",
      "f/a.txt": "two, longer",
      "f/e/b.txt": "b",
      "f/e/new.txt": "new",
    };
    await agrees(() => after);
    expect(sent()).toEqual({ update: 3, create: 2 });
    expect(ids()).toMatchObject(before);
    // Renames of a link, of a target's folder's file and of a link to a folder: titles alone, every id stays.
    renameSync(at("l.txt"), at("m.txt"));
    await agrees(() => renamed(after, { "l.txt": "m.txt" }));
    renameSync(at("d/e/b.txt"), at("d/e/c.txt"));
    renameSync(at("f"), at("g"));
    await agrees(() =>
      renamed(after, {
        "l.txt": "m.txt",
        "d/e/b.txt": "d/e/c.txt",
        "f/a.txt": "g/a.txt",
        "f/e/b.txt": "g/e/c.txt",
        "f/e/new.txt": "g/e/new.txt",
      }),
    );
    expect(sent()).toEqual({ update: 5 });
    unlinkSync(at("d/a.txt"));
    await agrees(() => ({
      "d/e/c.txt": "b",
      "d/e/new.txt": "new",
      "g/e/c.txt": "b",
      "g/e/new.txt": "new",
    }));
    expect(sent()).toEqual({ delete: 3 });
  });

  it("symbolic links that are exchanged as a whole, as a mounted ConfigMap is, are followed at once into hidden folders", async () => {
    const { at, agrees, sent } = await openLinked({
      "other.txt": "other",
      "..v1/a.txt": "a 1",
      "..v1/b.txt": "b",
    });
    symlinkSync("..v1", at("..data"));
    symlinkSync("..data/a.txt", at("a.txt"));
    symlinkSync("..data/b.txt", at("b.txt"));
    await agrees(() => ({ "a.txt": "a 1", "b.txt": "b", "other.txt": "other" }));
    sent();
    for (let version = 2; version < 5; version++) {
      mkdirSync(at(`..v${version}`));
      writeFileSync(at(`..v${version}/a.txt`), `a ${version}`);
      writeFileSync(at(`..v${version}/b.txt`), "b");
      symlinkSync(`..v${version}`, at("..tmp"));
      renameSync(at("..tmp"), at("..data"));
      rmSync(at(`..v${version - 1}`), { recursive: true });
      await agrees(() => ({ "a.txt": `a ${version}`, "b.txt": "b", "other.txt": "other" }));
      expect(sent()).toEqual({ update: 1 });
    }
    writeFileSync(at("..v4/b.txt"), "b, written in place");
    await agrees(() => ({ "a.txt": "a 4", "b.txt": "b, written in place", "other.txt": "other" }));
    expect(sent()).toEqual({ update: 1 });
  });

  it("links into a hidden folder that is taken away and comes back are followed on", async () => {
    const { at, agrees } = await openLinked({ "o.txt": "o", ".h/d/a.txt": "one" }, { f: ".h/d" });
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "one" }));
    renameSync(at(".h"), at(".away"));
    await agrees(() => ({ "o.txt": "o" }));
    mkdirSync(at(".h/d/e"), { recursive: true });
    writeFileSync(at(".h/d/a.txt"), "two");
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "two" }));
    writeFileSync(at(".h/d/e/b.txt"), "b");
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "two", "f/e/b.txt": "b" }));
    writeFileSync(at(".h/d/e/b.txt"), "b, changed");
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "two", "f/e/b.txt": "b, changed" }));
    expect(followed?.daemon.files({ limit: 10 })).toEqual([]);
  });

  it("symbolic links are watched on when the watcher's thread dies", async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): number => threads.push(thread);
    process.on("worker", note);
    const { at, agrees, daemon } = await openLinked({ "o.txt": "o", ".h/a.txt": "one" }, { f: ".h" });
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "one" }));
    await threads[0]?.terminate();
    await until(() => threads.length === 2 && daemon.status().sources[0]?.degraded === null);
    process.off("worker", note);
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "one" }));
    writeFileSync(at(".h/a.txt"), "two");
    await agrees(() => ({ "o.txt": "o", "f/a.txt": "two" }));
    expect(threads).toHaveLength(2);
  });

  it("symbolic links that lead outside send nothing of it, whatever they led to before", async () => {
    const elsewhere = makeTree({ "a.txt": "secret" });
    try {
      const { at, agrees, world, daemon } = await openLinked({ "d/a.txt": "a", "e.txt": "e" }, { f: "d" });
      await agrees(() => ({ "d/a.txt": "a", "e.txt": "e", "f/a.txt": "a" }));
      unlinkSync(at("f"));
      symlinkSync(elsewhere, at("f"));
      symlinkSync(join(elsewhere, "a.txt"), at("g.txt"));
      await agrees(() => ({ "d/a.txt": "a", "e.txt": "e" }));
      await until(() => daemon.files({ state: "skipped", limit: 10 }).some(({ path }) => path === "g.txt"));
      expect(daemon.files({ state: "skipped", limit: 10 })[0]?.message).toContain("outside of the source");
      expect(JSON.stringify(world.service.requests.map(({ body }) => body))).not.toContain("secret");
    } finally {
      removeTree(elsewhere);
    }
  });

  it("symbolic links that are no longer followed lose their resources, through the brakes", async () => {
    const { at, agrees, world } = await openLinked({ "d/a.txt": "a", "d/b.txt": "b" }, { f: "d" });
    await agrees(() => ({ "d/a.txt": "a", "d/b.txt": "b", "f/a.txt": "a", "f/b.txt": "b" }));
    await followed?.daemon.close();
    await world.sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["d/a.txt", "d/b.txt"]);
    expect(readFileSync(at("f/a.txt"), "utf8")).toBe("a");
  });
});

/** The same texts under other paths. */
function renamed(texts: Record<string, string>, names: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([path, text]) => [names[path] ?? path, text]));
}

describe("hard links", () => {
  it("hard links are documents of their own; what is written through one is found under both, and each may go alone", async () => {
    followed = await openFollowed({ "a.txt": "one", "sub/x.txt": "x" }, { timing: SINGLE_DELETES });
    const { at, agrees, sent, ids } = followed;
    linkSync(at("a.txt"), at("sub/b.txt"));
    await agrees();
    expect(sent()).toEqual({ create: 1 });
    const { "sub/b.txt": remaining } = ids();
    writeFileSync(at("a.txt"), "two, longer");
    // The write came through the other name, in another folder: a hint for this one alone.
    await followed.daemon.retry();
    await agrees();
    expect(sent()).toEqual({ update: 2 });
    unlinkSync(at("a.txt"));
    await agrees();
    expect(sent()).toEqual({ delete: 1 });
    expect(ids()["sub/b.txt"]).toBe(remaining);
  });
});
