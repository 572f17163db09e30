import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { whyText } from "../../../../src/cli/commands/why.ts";
import type { Explanation } from "../../../../src/wire/daemon-files.ts";
import { openWorld, type World } from "../../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

const why = (path: string, more: Record<string, unknown> = {}): Promise<Explanation> =>
  world.explain(path, world.source(more));

interface Case {
  readonly name: string;
  readonly path?: string;
  readonly source?: Record<string, unknown>;
  readonly prepare: () => void | Promise<void>;
  readonly expected: unknown;
}

const refuseAll = (): void => {
  world.service.fault = ({ operation }) =>
    operation === "create"
      ? { kind: "answer", status: 422, body: '{"success":false,"message":"too odd"}' }
      : undefined;
};

const cases: readonly Case[] = [
  {
    name: "a file in agreement",
    prepare: async () => {
      world.write("a.md", "# Hello\n");
      await world.sync();
    },
    expected: {
      path: "a.md",
      wanted: true,
      leftOutBy: null,
      disk: { kind: "file", sizeBytes: 8 },
      content: { outcome: "document" },
      recipe: { title: "Hello", kind: "content" },
      ledger: { state: "agreed", title: "Hello", error: null },
      intents: [],
      activity: [{ action: "create", outcome: "done", path: "a.md" }],
      next: { action: "nothing", why: expect.stringContaining("nothing has changed") as string },
    },
  },
  {
    name: "a file before the first sync",
    prepare: () => world.write("a.md", "text"),
    expected: { ledger: null, activity: [], next: { action: "create" } },
  },
  {
    name: "a file that changed",
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
      world.write("a.md", "another text");
    },
    expected: { ledger: { state: "agreed" }, next: { action: "update" } },
  },
  {
    name: "a file whose settings changed",
    source: { settings: { chunkSize: 300 } },
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
    },
    expected: { next: { action: "replace" } },
  },
  {
    name: "a file whose description a rule makes",
    source: { rules: [{ match: "*.md", description: "D {name}" }] },
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
    },
    expected: {
      recipe: { description: "D a.md" },
      next: { action: "retitle" },
    },
  },
  {
    name: "a file that was touched",
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
      rmSync(join(world.root, "a.md"));
      world.write("a.md", "text");
    },
    expected: { next: { action: "touch" } },
  },
  {
    name: "a file that was renamed",
    prepare: async () => {
      world.write("old.md", "text");
      await world.sync();
      renameSync(join(world.root, "old.md"), join(world.root, "a.md"));
    },
    expected: {
      ledger: null,
      next: { action: "move", why: expect.stringContaining("it was old.md") as string },
    },
  },
  {
    name: "a file that was deleted",
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
      unlinkSync(join(world.root, "a.md"));
    },
    expected: { disk: { kind: "absent" }, content: null, next: { action: "delete" } },
  },
  {
    name: "a file whose delete is held",
    prepare: async () => {
      for (const name of ["a.md", "b.md"]) world.write(name, name);
      await world.sync();
      for (const name of ["a.md", "b.md"]) unlinkSync(join(world.root, name));
      await world.sync();
    },
    expected: {
      ledger: null,
      held: [{ state: "held" }],
      next: { action: "hold", why: expect.stringContaining("kbsync approve") as string },
    },
  },
  {
    name: "a file whose delete is agreed to",
    prepare: async () => {
      for (const name of ["a.md", "b.md"]) world.write(name, name);
      await world.sync();
      for (const name of ["a.md", "b.md"]) unlinkSync(join(world.root, name));
      await world.sync();
      await world.offline.approve();
    },
    expected: {
      held: [{ state: "doomed" }],
      next: { action: "hold", why: expect.stringContaining("it was approved") as string },
    },
  },
  {
    name: "a file that never was",
    prepare: () => undefined,
    expected: { disk: { kind: "absent" }, ledger: null, next: { action: "nothing" } },
  },
  {
    name: "a file that the service refused",
    prepare: async () => {
      refuseAll();
      world.write("a.md", "text");
      await world.sync();
    },
    expected: {
      ledger: { state: "failed", docId: null, error: { message: "too odd" }, tries: 1 },
      next: { action: "nothing", why: expect.stringContaining("kbsync retry") as string },
    },
  },
  {
    name: "a file that the service did not answer for",
    prepare: async () => {
      // The answer to a first create names the collection, whose list then settles another create.
      world.write("first.md", "first");
      await world.sync();
      world.service.fault = ({ operation }) =>
        operation === "create" ? { kind: "answer", status: 500, body: "oops" } : undefined;
      world.write("a.md", "text");
      await world.sync();
    },
    expected: {
      ledger: { state: "parked", docId: null },
      next: {
        action: "create",
        why: expect.stringMatching(/no document of it; it was postponed, and is tried again/) as string,
      },
    },
  },
  {
    name: "a file that an ignore file leaves out",
    prepare: () => {
      world.write(".kbsyncignore", "*.md\n");
      world.write("a.md", "text");
    },
    expected: {
      wanted: false,
      leftOutBy: "left out by `*.md` in .kbsyncignore:1",
      next: { action: "nothing", why: expect.stringContaining("*.md") as string },
    },
  },
  {
    name: "a file that a glob leaves out, which was synced before",
    source: { exclude: ["a.*"] },
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
    },
    expected: {
      wanted: false,
      leftOutBy: "left out by `a.*` in `exclude`",
      ledger: { state: "agreed" },
      next: { action: "delete", why: expect.stringContaining("the rules leave it out now") as string },
    },
  },
  {
    name: "a hidden file",
    path: ".secret.md",
    prepare: () => world.write(".secret.md", "text"),
    expected: { wanted: false, leftOutBy: "a hidden file" },
  },
  {
    name: "a file in a folder that is left out",
    path: ".git/a.md",
    prepare: () => world.write(".git/a.md", "text"),
    expected: { wanted: false, leftOutBy: "in .git: a hidden folder" },
  },
  {
    name: "a file that is too large",
    source: { maxFileBytes: 3 },
    prepare: () => world.write("a.md", "text"),
    expected: { next: { action: "refuse", why: expect.stringContaining("maxFileBytes") as string } },
  },
  {
    name: "a kind that is never text",
    path: "a.zip",
    prepare: () => world.write("a.zip", "text"),
    expected: { next: { action: "skip", why: expect.stringContaining("an archive") as string } },
  },
  {
    name: "an empty file",
    prepare: () => world.write("a.md", ""),
    expected: { next: { action: "skip" } },
  },
  {
    name: "binary data under a text's name",
    prepare: () => world.write("a.md", Buffer.from([0, 1, 2, 3, 0, 255])),
    expected: { content: { outcome: "skipped" }, next: { action: "skip" } },
  },
  {
    name: "a symbolic link that is not followed",
    prepare: () => {
      world.write("b.md", "text");
      symlinkSync(join(world.root, "b.md"), join(world.root, "a.md"));
    },
    expected: { disk: { kind: "link", target: expect.stringContaining("b.md") as string }, content: null },
  },
  {
    name: "a folder",
    path: "folder",
    prepare: () => {
      mkdirSync(join(world.root, "folder"));
    },
    expected: { disk: { kind: "folder" }, next: { action: "nothing" } },
  },
  {
    name: "a file of a paused source",
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
      await world.offline.pause();
      world.write("a.md", "another text");
    },
    expected: {
      state: { paused: true },
      next: { action: "wait", why: expect.stringMatching(/paused.*after that: update/) as string },
    },
  },
  {
    name: "a file of a source whose folder is missing",
    prepare: async () => {
      world.write("a.md", "text");
      await world.sync();
      renameSync(world.root, `${world.root}-away`);
      await world.sync();
    },
    expected: {
      disk: { kind: "absent" },
      ledger: { state: "agreed" },
      state: { halted: expect.stringContaining("missing") as string },
      next: { action: "nothing" },
    },
  },
];

describe("every decision about", () => {
  it.each(cases)("explains every decision about $name", async ({ path, source, prepare, expected }) => {
    await prepare();
    const found = await why(path ?? "a.md", source);
    expect(found).toMatchObject(expected as Record<string, unknown>);
    // Also explained in words, whatever is known of it.
    expect(whyText(found, null, world.stateDir)).toContain(
      `next        ${found.next.action}: ${found.next.why}\n`,
    );
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
  });
});

it("shows neither size nor time of a file that was refused before it was read", async () => {
  world.write("a.md", "# Hello\n");
  await world.sync();
  world.write("large.md", "a".repeat(2000));
  const limit = { maxFileBytes: 1000 };
  await world.sync({ sources: [world.source(limit)] });
  const text = whyText(await why("large.md", limit), null, world.stateDir);
  expect(text).toContain("state       failed: 2000 bytes, larger than maxFileBytes (1000)\n");
  expect(text).not.toContain("1970");
});

it("knows nothing of a file in a source that is not in the ledger", async () => {
  world.write("a.md", "text");
  await world.sync();
  const other = { ...world.source(), path: `${world.root}/more`, absolutePath: `${world.root}/more` };
  world.write("more/a.md", "text");
  const found = await world.explain("a.md", other);
  expect(found).toMatchObject({
    ledger: null,
    held: [],
    intents: [],
    activity: [],
    state: { paused: false, halted: null, holdReason: null },
    next: { action: "create" },
  });
});

describe("a source as a whole", () => {
  it("explains a source as a whole, with and without an ignore file", async () => {
    world.write("a.md", "text");
    world.write(".kbsyncignore", "*.log\n");
    expect(await why("")).toMatchObject({ path: "", wanted: true, next: { action: "nothing" } });
    await world.sync();
    const found = await why("");
    expect(found).toMatchObject({
      wanted: true,
      disk: { kind: "folder" },
      next: { action: "nothing", why: expect.stringContaining("see `kbsync status`") as string },
      activity: [{ action: "create", path: "a.md" }],
    });
    expect(whyText(found, null, world.stateDir)).not.toContain("never sent");
  });

  it("explains why a source stands still", async () => {
    world.write("a.md", "text");
    world.write("b.md", "text b");
    await world.sync();
    await world.offline.pause();
    expect((await why("")).next).toMatchObject({
      action: "wait",
      why: expect.stringContaining("paused") as string,
    });
    await world.offline.resume();
    for (const name of ["a.md", "b.md"]) rmSync(join(world.root, name));
    await world.sync();
    expect((await why("")).next).toMatchObject({
      action: "hold",
      why: expect.stringContaining("2 deletes wait for `kbsync approve`") as string,
    });
    renameSync(world.root, `${world.root}-away`);
    expect((await why("")).next).toMatchObject({
      action: "wait",
      why: expect.stringContaining("missing") as string,
    });
  });
});

describe("what is there and is no file to be synced is said to be there", () => {
  it("explains a FIFO", async () => {
    execFileSync("mkfifo", [join(world.root, "pipe.md")]);
    const found = await why("pipe.md");
    expect(found.next).toEqual({
      action: "nothing",
      why: "it is a FIFO; only files and folders are synced",
    });
    expect(whyText(found, null, world.stateDir)).toContain("disk        a FIFO");
  });

  it("explains a name that is not UTF-8, as the shell passes it", async () => {
    const folder = Buffer.from(`${world.root}/sub\xff`, "latin1");
    mkdirSync(folder);
    writeFileSync(Buffer.from(`${world.root}/caf\xe9.md`, "latin1"), "text");
    writeFileSync(Buffer.concat([folder, Buffer.from("/a.md")]), "text");
    for (const path of ["caf\uFFFD.md", "sub\uFFFD", "sub\uFFFD/a.md"])
      expect((await why(path)).next).toMatchObject({
        action: "refuse",
        why: expect.stringContaining("not valid UTF-8: rename it") as string,
      });
    world.write("really\uFFFD.md", "spelled so");
    expect((await why("really\uFFFD.md")).next.action).toBe("create");
  });
});

it("shows the hash on disk next to the acknowledged one, whatever size and times are", async () => {
  world.write("a.md", "text");
  await world.sync();
  const before = await why("a.md");
  expect(before.content?.hash).toBe(before.ledger?.hash);
  world.write("a.md", "TEXT");
  const after = await why("a.md");
  expect(after.ledger?.hash).toBe(before.ledger?.hash);
  expect(after.content?.hash).not.toBe(before.content?.hash);
});

it("says of a symbolic link that it is left out, also where its path had a file", async () => {
  world.write("a.md", "# Hello\n");
  world.write("b.md", "b");
  await world.sync();
  rmSync(join(world.root, "b.md"));
  for (const name of ["link.md", "b.md"]) symlinkSync("a.md", join(world.root, name));
  const leftOutBy = "a symbolic link: no link is followed";
  expect(await why("link.md")).toMatchObject({
    wanted: false,
    leftOutBy,
    disk: { kind: "link", target: "a.md" },
    version: { state: "skipped", reason: leftOutBy },
    next: { action: "nothing", why: leftOutBy },
  });
  expect(await why("b.md")).toMatchObject({ leftOutBy, next: { action: "delete" } });
});
