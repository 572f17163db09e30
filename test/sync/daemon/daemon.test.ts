import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

const titles = (): string[] => world.service.live().map(({ title }) => title);
const idOf = (title: string): string | undefined =>
  world.service.live().find((each) => each.title === title)?._id;

describe("one pass", () => {
  it("creates one resource per file, and sends nothing in a second pass", async () => {
    world.write("a.md", "# Alpha\n\ntext a");
    world.write("sub/b.txt", "text b");
    await world.sync();
    expect(titles()).toEqual(["Alpha", "sub/b.txt"]);
    expect(world.service.live().map(({ content }) => content)).toEqual(["# Alpha\n\ntext a", "text b"]);
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(before);
  });

  it("sends an edit as one update", async () => {
    world.write("a.md", "# Alpha\n\none");
    await world.sync();
    const id = idOf("Alpha");
    const before = world.service.requests.length;
    world.write("a.md", "# Alpha\n\ntwo, longer");
    await world.sync();
    expect(world.service.requests.slice(before).map(({ operation }) => operation)).toEqual(["update"]);
    expect(idOf("Alpha")).toBe(id);
    expect(world.service.live()[0]?.content).toBe("# Alpha\n\ntwo, longer");
  });

  it("sends nothing for a touch", async () => {
    world.write("a.md", "# Alpha");
    await world.sync();
    const before = world.service.requests.length;
    world.write("a.md", "# Alpha");
    await world.sync();
    await world.sync();
    expect(world.service.requests.length).toBe(before);
  });

  it("deletes only the resource of a deleted file", async () => {
    for (const name of ["a", "b", "c"]) world.write(`${name}.txt`, name);
    await world.sync();
    rmSync(join(world.root, "b.txt"));
    await world.sync();
    expect(titles()).toEqual(["a.txt", "c.txt"]);
    expect(world.service.count("delete")).toBe(1);
  });

  it("keeps the id of a renamed file and sends only its title", async () => {
    world.write("a.txt", "same text");
    await world.sync();
    const id = idOf("a.txt");
    renameSync(join(world.root, "a.txt"), join(world.root, "z.txt"));
    const before = world.service.requests.length;
    await world.sync();
    expect(idOf("z.txt")).toBe(id);
    const sent = world.service.requests.slice(before);
    expect(sent.map(({ operation }) => operation)).toEqual(["update"]);
    expect(Object.keys(sent[0]?.body ?? {}).sort()).toEqual(["description", "title"]);
    expect(world.activity.at(-1)).toMatchObject({ action: "move", from: "a.txt", path: "z.txt", docId: id });
  });

  it("sends the move of a file that contains its title once, because its marker names the path", async () => {
    world.write("a.md", "---\ntitle: Alpha\ndescription: of itself\n---\nFirst.");
    await world.sync();
    const before = world.service.requests.length;
    mkdirSync(join(world.root, "sub"));
    renameSync(join(world.root, "a.md"), join(world.root, "sub/b.md"));
    await world.sync();
    await world.sync();
    expect(world.service.requests.slice(before).map(({ operation }) => operation)).toEqual(["update"]);
    world.write("sub/b.md", "---\ntitle: Alpha\ndescription: of itself\n---\nSecond.");
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });

  it("keeps the ids of files that swap their names", async () => {
    world.write("a.txt", "first");
    world.write("b.txt", "second");
    await world.sync();
    const [a, b] = [idOf("a.txt"), idOf("b.txt")];
    renameSync(join(world.root, "a.txt"), join(world.root, "t.txt"));
    renameSync(join(world.root, "b.txt"), join(world.root, "a.txt"));
    renameSync(join(world.root, "t.txt"), join(world.root, "b.txt"));
    await world.sync();
    expect([idOf("b.txt"), idOf("a.txt")]).toEqual([a, b]);
    expect(
      world.service.requests.some(
        ({ body }) => body?.["content"] !== undefined && body["collection_details"] === undefined,
      ),
    ).toBe(false);
  });

  it("follows a rename over another file", async () => {
    world.write("a.txt", "first");
    world.write("b.txt", "second");
    await world.sync();
    const a = idOf("a.txt");
    renameSync(join(world.root, "a.txt"), join(world.root, "b.txt"));
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: a, title: "b.txt", content: "first" }]);
  });

  it("recognises by content a file that moved with a new inode", async () => {
    world.write("a.txt", "the very same content");
    await world.sync();
    const id = idOf("a.txt");
    rmSync(join(world.root, "a.txt"));
    world.write("other.txt", "the very same content");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: id, title: "other.txt" }]);
  });

  it("creates a separate resource for a copy", async () => {
    world.write("a.txt", "text");
    await world.sync();
    world.write("b.txt", "text");
    await world.sync();
    expect(titles()).toEqual(["a.txt", "b.txt"]);
  });

  it("uploads a PDF and creates a file resource for its address", async () => {
    const bytes = Buffer.concat([Buffer.from("%PDF-1.4\n"), Buffer.alloc(3_000_000, "x")]);
    world.write("paper.pdf", bytes);
    await world.sync();
    const [resource] = world.service.live();
    const upload = world.service.uploads.get(resource?.url ?? "");
    expect(upload?.bytes).toBe(bytes.length);
    expect(world.service.requests.map(({ operation }) => operation)).toEqual([
      "collections",
      "upload",
      "create",
      // A new ledger adopts once the collection's id is known, by two lists that agree.
      "list",
      "list",
    ]);
    world.write("paper.pdf", Buffer.concat([bytes, Buffer.from("more")]));
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: resource?._id }]);
    expect(world.service.uploads.get(world.service.live()[0]?.url ?? "")?.bytes).toBe(bytes.length + 4);
  });

  it("replaces a resource whose settings changed: creates the new one first, then deletes the old one", async () => {
    world.write("a.txt", "text");
    await world.sync();
    const before = world.service.requests.length;
    const sources = [world.source({ settings: { chunkSize: 500 } })];
    await world.sync({ sources });
    expect(world.service.requests.slice(before).map(({ operation }) => operation)).toEqual([
      "create",
      "delete",
    ]);
    expect(world.service.live()).toMatchObject([{ title: "a.txt", settings: { chunkSize: 500 } }]);
    await world.sync({ sources });
    expect(world.service.requests.length).toBe(before + 2);
  });
});

describe("what one scan cannot detect", () => {
  it("deletes nothing of a folder that is renamed during the scan", async () => {
    world.write("top.txt", "top");
    for (let index = 0; index < 5; index += 1) world.write(`d/${index}.txt`, `text ${index}`);
    await world.sync();
    const ids = world.service.live().map(({ _id }) => _id);
    const { maxFileBytes, ...source } = world.source();
    let renamed = false;
    // Triggered at the root's file, when the root is listed and the folder is not.
    const sources = [
      Object.defineProperty({ ...source, maxFileBytes }, "maxFileBytes", {
        enumerable: true,
        get: () => {
          if (!renamed) renameSync(join(world.root, "d"), join(world.root, "e"));
          renamed = true;
          return maxFileBytes;
        },
      }),
    ];
    await world.sync({ sources });
    expect(renamed).toBe(true);
    expect([world.service.count("delete"), world.service.count("create")]).toEqual([0, 6]);
    expect(world.service.live().map(({ _id }) => _id)).toEqual(ids);
    expect(titles().toSorted()[0]).toBe("e/0.txt");
  });

  it("returns their resources to restored files of an emptied folder, equal or edited", async () => {
    world.write("a/LICENSE", "same words");
    world.write("b/LICENSE", "same words");
    world.write("c.txt", "text");
    await world.sync();
    const ids = ["a/LICENSE", "b/LICENSE", "c.txt"].map(idOf);
    for (const name of ["a", "b", "c.txt"]) rmSync(join(world.root, name), { recursive: true });
    await world.sync();
    world.write("a/LICENSE", "same words");
    world.write("b/LICENSE", "same words");
    world.write("c.txt", "text, edited meanwhile");
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    await daemon.close();
    expect(["a/LICENSE", "b/LICENSE", "c.txt"].map(idOf)).toEqual(ids);
    expect(status.sources[0]).toMatchObject({ files: 3, searchable: 3, held: 0, holdReason: null });
    expect([world.service.count("create"), world.service.count("update")]).toEqual([3, 1]);
  });
});

describe("trouble with one file", () => {
  it("keeps a refused file failed, with the service's words, until it changes", async () => {
    world.service.fault = ({ operation, body }) =>
      operation === "create" && body?.["content"] === "bad"
        ? {
            kind: "answer",
            status: 422,
            body: JSON.stringify({ success: false, message: "no chunk fits", error: { code: "no_chunk" } }),
          }
        : undefined;
    world.write("bad.txt", "bad");
    world.write("good.txt", "good");
    await world.sync();
    await world.sync();
    expect(world.service.count("create")).toBe(2);
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources[0]).toMatchObject({ files: 2, searchable: 1, failed: 1, waiting: 0 });
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "bad.txt", state: "failed", code: "no_chunk", message: "no chunk fits" },
    ]);
    await daemon.close();
    world.write("bad.txt", "good now");
    await world.sync();
    expect(titles()).toEqual(["bad.txt", "good.txt"]);
  });

  it("takes `success: false` in a 200 for a refusal", async () => {
    world.service.fault = ({ operation }) =>
      operation === "create"
        ? { kind: "answer", status: 200, body: '{"success":false,"message":"quota"}' }
        : undefined;
    world.write("a.txt", "text");
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(daemon.files({ limit: 1 })).toMatchObject([{ message: "quota" }]);
    await daemon.close();
  });

  it("creates a resource again that somebody deleted at the service", async () => {
    world.write("a.txt", "text");
    await world.sync();
    for (const resource of world.service.resources.values()) resource.isDeleted = true;
    world.write("a.txt", "changed");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ content: "changed" }]);
  });
});

describe("what is skipped", () => {
  const source = async () => {
    const daemon = world.daemon();
    await daemon.syncOnce();
    const reported = { ...daemon.status().sources[0], named: daemon.files({ state: "skipped", limit: 10 }) };
    await daemon.close();
    return reported;
  };

  it("counts and names skipped files separately, and does not read them again", async () => {
    world.write("a.md", "# Alpha");
    world.write("pkg/__init__.py", "");
    world.write("b.zip", "PK");
    world.write("c.dat", "a\0b");
    world.write("d.pdf", "");
    const { named, ...counts } = await source();
    expect(counts).toMatchObject({ files: 1, searchable: 1, waiting: 0, failed: 0, skipped: 4 });
    expect(named).toMatchObject([
      { source: world.root, path: "b.zip", message: ".zip is an archive: no text is taken from it" },
      {
        source: world.root,
        path: "c.dat",
        message: "binary data of an unknown kind: no text is taken from it",
      },
      { source: world.root, path: "d.pdf", message: "the file is empty" },
      { source: world.root, path: "pkg/__init__.py", message: "the file is empty" },
    ]);
    const reported = (): number => world.activity.filter(({ outcome }) => outcome === "skipped").length;
    expect(reported()).toBe(4);
    expect(world.activity.filter(({ outcome }) => outcome !== "skipped" && outcome !== "done")).toEqual([]);
    expect(await source()).toMatchObject({ files: 1, skipped: 4 });
    expect(reported()).toBe(4);
  });

  it("sends a skipped file when it becomes wanted", async () => {
    world.write("empty.md", "");
    world.write("a.bin", "some text");
    world.write("b.dat", "a\0b");
    expect(await source()).toMatchObject({ files: 0, skipped: 3 });
    world.write("empty.md", "# Full");
    renameSync(join(world.root, "a.bin"), join(world.root, "a.txt"));
    world.write("b.dat", "text by now");
    expect(await source()).toMatchObject({ files: 3, searchable: 3, failed: 0, skipped: 0 });
    expect(titles().toSorted()).toEqual(["Full", "a.txt", "b.dat"]);
    expect(world.service.count("create")).toBe(3);
  });

  it("removes a skipped file from the ledger when it is gone", async () => {
    world.write("a.bin", "x");
    await source();
    rmSync(join(world.root, "a.bin"));
    expect(await source()).toMatchObject({ files: 0, skipped: 0, named: [] });
  });

  it("plans a skipped file once", async () => {
    world.write("a.bin", "x");
    world.write("b.md", "");
    const planned = async () => {
      const daemon = world.daemon();
      const result = await daemon.syncOnce({ dryRun: true });
      await daemon.close();
      return result.planned?.map(({ action, path }) => `${action} ${path}`).toSorted();
    };
    expect(await planned()).toEqual(["skip a.bin", "skip b.md"]);
    await world.sync();
    expect(await planned()).toEqual([]);
  });
});

describe("a known file that has nothing in it any more", () => {
  it("updates a file to empty and back when its author empties it", async () => {
    world.write("a.txt", "first");
    await world.sync();
    const id = idOf("a.txt");
    world.write("a.txt", "");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: id, title: "a.txt", content: "" }]);
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(before);
    world.write("a.txt", "second");
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: id, content: "second" }]);
    expect(world.service.count("delete")).toBe(0);
  });

  it.each([
    ["became binary data", "a.txt", "first", "a\0b", "binary data of an unknown kind"],
    ["is an empty PDF", "a.pdf", "%PDF-1.4 text", "", "the file is empty"],
  ])("keeps the resource of a file that %s, and reports it", async (_name, path, was, is, words) => {
    world.write(path, was);
    await world.sync();
    world.write(path, is);
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources[0]).toMatchObject({ files: 1, failed: 1, skipped: 0 });
    expect(daemon.files({ limit: 10 })).toMatchObject([{ path, message: expect.stringContaining(words) }]);
    await daemon.close();
    expect(world.service.live()).toHaveLength(1);
    rmSync(join(world.root, path));
    world.write("other.txt", "x");
    await world.sync();
    expect(titles()).toEqual(["other.txt"]);
  });

  it("fails an emptied file with the words of a service that accepts no empty content", async () => {
    world.write("a.txt", "first");
    await world.sync();
    world.service.fault = ({ body }) =>
      body?.["content"] === ""
        ? { kind: "answer", status: 400, body: '{"success":false,"message":"content is empty"}' }
        : undefined;
    world.write("a.txt", "");
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources[0]).toMatchObject({ files: 1, failed: 1, skipped: 0 });
    expect(daemon.files({ limit: 10 })).toMatchObject([{ path: "a.txt", message: "content is empty" }]);
    await daemon.close();
  });

  it("does not update a file to empty between an editor's truncate and write", async () => {
    world.write("a.txt", "first");
    const daemon = world.daemon({ settings: { settleMs: 100 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => titles().length === 1 && daemon.status().idle);
    world.write("a.txt", "");
    world.write("a.txt", "second");
    await until(() => world.service.live()[0]?.content === "second");
    stop.abort();
    await ended;
    expect([world.service.count("update"), world.service.count("delete")]).toEqual([1, 0]);
  });

  it("deletes the resource of a file that is renamed to an unsupported kind", async () => {
    world.write("a.txt", "first");
    world.write("b.txt", "second");
    await world.sync();
    renameSync(join(world.root, "a.txt"), join(world.root, "a.bin"));
    await world.sync();
    expect(titles()).toEqual(["b.txt"]);
  });
});

describe("watching", () => {
  it("follows changes in the folder, and ends cleanly", async () => {
    world.write("a.txt", "one");
    const daemon = world.daemon({ settings: { settleMs: 20 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => titles().length === 1 && daemon.status().idle);
    world.write("a.txt", "one, changed");
    world.write("deep/er/b.txt", "two");
    await until(
      () => world.service.live().some(({ content }) => content === "one, changed") && titles().length === 2,
    );
    const id = idOf("deep/er/b.txt");
    renameSync(join(world.root, "deep"), join(world.root, "high"));
    await until(() => idOf("high/er/b.txt") === id);
    rmSync(join(world.root, "a.txt"));
    await until(() => titles().length === 1);
    for (let index = 0; index < 10; index += 1) {
      writeFileSync(join(world.root, "tmp~"), `version ${index}`);
      renameSync(join(world.root, "tmp~"), join(world.root, "saved.txt"));
    }
    await until(() => world.service.live().some(({ content }) => content === "version 9"));
    expect(world.service.count("create")).toBe(3);
    stop.abort();
    await ended;
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(before);
  });
});
