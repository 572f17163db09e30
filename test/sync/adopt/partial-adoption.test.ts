import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { join } from "node:path";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { type DocumentReader, openLocalReader } from "../../../src/sync/read/reader.ts";
import type { FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

/**
 * A new ledger, a resource of somebody else at the same owner, and a folder that cannot be read: files below it may
 * have resources, which is not known yet.
 */

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  world.write("a.txt", "text a");
  world.write("b.txt", "text b");
  world.write("closed/c.txt", "text c");
  // An ignore file of this size is not read: what it would leave out is unknown, and nothing below it is checked.
  world.write("closed/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
});
afterEach(() => world.end());

const COLLECTION = `${"c".repeat(23)}1`;
let made = 0;
/** Adds a resource that this daemon did not make. */
const addForeign = (title: string, content: string, description = "of somebody else"): FakeResource => {
  made += 1;
  const at = new Date(0).toISOString();
  const resource: FakeResource = {
    _id: `f${String(made).padStart(23, "0")}`,
    title,
    description,
    settings: {},
    content,
    collectionId: COLLECTION,
    ownerId: "docs-owner",
    refreshedAt: null,
    isDeleted: false,
    createdAt: at,
    updatedAt: at,
  };
  world.service.resources.set(resource._id, resource);
  return resource;
};
const openFolder = (): void => rmSync(join(world.root, "closed/.kbsyncignore"));
const texts = (): (readonly [string, string | undefined])[] =>
  world.service.live().map(({ title, content }) => [title, content] as const);
const descriptionOf = (title: string): string =>
  world.service.live().find((resource) => resource.title === title)?.description ?? "";

describe("after a part of the folder could not be read", () => {
  it("an edit is sent that was made while another file was in flight, after a part of the folder could not be read", async () => {
    addForeign("theirs", "their text");
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.live().length === 3 && daemon.status().idle);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    world.service.fault = ({ operation, body }) =>
      operation === "create" && body?.["title"] === "slow.txt" ? { kind: "wait", until: held } : undefined;
    world.write("slow.txt", "slow");
    await until(() => world.service.requests.some(({ body }) => body?.["title"] === "slow.txt"));
    world.write("a.txt", "text a, edited");
    world.write("new.txt", "new");
    await until(
      () => texts().some(([title]) => title === "new.txt"),
      () => "the new file, while another one is on its way",
    );
    release();
    await until(
      () => texts().length === 5 && daemon.status().idle,
      () => JSON.stringify(texts()),
    );
    expect(texts()).toContainEqual(["a.txt", "text a, edited"]);
    stop.abort();
    await ended;
  });

  it("a new file elsewhere costs one request after a part of the folder could not be read", async () => {
    addForeign("theirs", "their text");
    await world.sync();
    for (const name of ["new.txt", "newer.txt"]) {
      const number = world.service.requests.length;
      world.write(name, `text ${name}`);
      await world.sync();
      expect(world.service.requests.slice(number).map(({ operation }) => operation)).toEqual(["create"]);
    }
  });

  it("a file with a resource takes none of somebody else's after a part of the folder could not be read, and none of ours goes", async () => {
    addForeign("theirs", "their text");
    await world.sync();
    const before = world.service.live();
    const theirs = addForeign("a.txt", "their own a", descriptionOf("a.txt"));
    world.write("new.txt", "new");
    world.write("closed/d.txt", "text d");
    await world.sync();
    openFolder();
    await world.sync();
    await world.sync();
    expect(theirs).toMatchObject({ content: "their own a", isDeleted: false });
    for (const resource of before) expect(resource.isDeleted).toBe(false);
    expect(texts()).toHaveLength(7);
  });

  it("a file of an unreadable part takes its own resource when it can be read, and nothing else does", async () => {
    openFolder();
    await world.sync();
    const ids = new Map(world.service.live().map(({ title, _id }) => [title, _id]));
    rmSync(world.stateDir, { recursive: true });
    world.write("closed/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
    addForeign("theirs", "their text");
    await world.sync();
    world.write("new.txt", "new");
    await world.sync();
    openFolder();
    world.write("closed/d.txt", "text d");
    await world.sync();
    expect(world.service.live().find(({ title }) => title === "closed/c.txt")?._id).toBe(
      ids.get("closed/c.txt"),
    );
    expect(texts()).toHaveLength(6);
    // From here on every part was read, and a new file there is an ordinary one.
    const number = world.service.requests.length;
    world.write("closed/e.txt", "text e");
    await world.sync();
    expect(world.service.requests.slice(number).map(({ operation }) => operation)).toEqual(["create"]);
  });

  it("a file takes its own resource when its folder becomes unreadable between the check and the adoption", async () => {
    rmSync(join(world.root, "a.txt"));
    rmSync(join(world.root, "b.txt"));
    openFolder();
    await world.sync();
    const id = world.service.live()[0]?._id;
    rmSync(world.stateDir, { recursive: true });
    world.service.fault = ({ operation }) => {
      if (operation === "list") world.write("closed/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
      return undefined;
    };
    await world.sync();
    expect(world.service.requests.filter(({ operation }) => operation === "create")).toHaveLength(1);
    world.service.fault = () => undefined;
    openFolder();
    await world.sync();
    expect(world.service.live().map(({ _id }) => _id)).toEqual([id]);
  });

  it.each(["missing", "empty"])(
    "files take their own resources when the source's folder is %s only while a new ledger is compared",
    async (how) => {
      openFolder();
      await world.sync();
      const ids = world.service.live().map(({ _id }) => _id);
      rmSync(world.stateDir, { recursive: true });
      const away = `${world.root}-away`;
      world.service.fault = ({ operation }) => {
        if (operation !== "list" || existsSync(away)) return undefined;
        renameSync(world.root, away);
        if (how === "empty") mkdirSync(world.root);
        return undefined;
      };
      const comeBack = (): void => {
        world.service.fault = () => undefined;
        if (!existsSync(away)) return;
        rmSync(world.root, { recursive: true, force: true });
        renameSync(away, world.root);
      };
      const reader = openLocalReader();
      const read: DocumentReader["read"] = async (...args) => {
        comeBack();
        return await reader.read(...args);
      };
      await world.sync({ world: { ...REAL_WORLD, openReader: () => ({ ...reader, read }) } });
      comeBack();
      await world.sync();
      expect(world.service.live().map(({ _id }) => _id)).toEqual(ids);
    },
  );

  it.each([
    { how: "as it was", text: "# Another title\n\nanother text" },
    { how: "and changed since", text: "# Another title\n\nyet another text" },
  ])(
    "a file of an unreadable part takes the resource that it received after the backup, $how",
    async ({ text }) => {
      openFolder();
      world.write("closed/d.md", "# A title\n\na text");
      await world.sync();
      const backup = `${world.stateDir}-backup`;
      cpSync(world.stateDir, backup, { recursive: true });
      rmSync(join(world.root, "closed/d.md"));
      await world.sync();
      world.write("closed/d.md", "# Another title\n\nanother text");
      await world.sync();
      const since = world.service.live().find(({ title }) => title === "Another title");
      rmSync(world.stateDir, { recursive: true });
      renameSync(backup, world.stateDir);
      world.write("closed/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
      await world.sync();
      world.write("closed/d.md", text);
      openFolder();
      await world.sync();
      expect(texts()).toHaveLength(4);
      expect(since).toMatchObject({ content: text, isDeleted: false });
      // The finding is recorded: the next change is an ordinary one.
      const number = world.service.requests.length;
      world.write("closed/d.md", "# Another title\n\nthe last text");
      await world.sync();
      expect(world.service.requests.slice(number).map(({ operation }) => operation)).toEqual(["update"]);
    },
  );

  it(
    "a file of an unreadable part takes nothing of somebody else's when a crash interrupted the adoption",
    { timeout: 60_000 },
    async () => {
      openFolder();
      await world.sync();
      rmSync(world.stateDir, { recursive: true });
      // A second resource under the title of one of ours. Alone it would seem to be that file's.
      const theirs = addForeign("a.txt", "their own a", descriptionOf("a.txt"));
      for (let nth = 1, passed = false; !passed; nth += 1) {
        let count = 0;
        const step = (): void => {
          count += 1;
          if (count >= nth) throw new Error("a crash");
        };
        passed = await world.sync({ step }).then(
          () => true,
          () => false,
        );
        await world.sync();
        expect(theirs, `crash at effect ${nth}`).toMatchObject({ content: "their own a", isDeleted: false });
        expect(texts(), `crash at effect ${nth}`).toHaveLength(4);
        rmSync(world.stateDir, { recursive: true });
      }
    },
  );
});
