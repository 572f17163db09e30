import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { recoverLedger, type RecoverReport, type DaemonOptions } from "../../../src/sync/daemon.ts";
import { readStatus } from "../../../src/sync/operator/status.ts";
import { syncSettings } from "../settings.ts";
import type { FakeOptions, FakeResource } from "../../fakes/knowledge-service.ts";
import { markFile } from "../../../src/sync/ledger/mark.ts";
import { openSqlite } from "../../../src/sync/ledger/database/open.ts";
import { distrustRestored } from "../../../src/sync/ledger/restored.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

let world: World;
const open = async (options: FakeOptions = { collections: true }): Promise<void> => {
  world = await openWorld(options);
};
beforeEach(() => open());
afterEach(async () => {
  await world.end();
});

const loseLedger = (): void => {
  for (const name of readdirSync(world.stateDir).filter((file) => file.startsWith("ledger.db")))
    rmSync(join(world.stateDir, name));
};
const ids = (): Record<string, string> =>
  Object.fromEntries(world.service.live().map(({ title, _id }) => [title, _id]));
/** Requests since a number of them, except lists and requests for collections. */
const sentSince = (number: number): string[] =>
  world.service.requests
    .slice(number)
    .map(({ operation }) => operation)
    .filter((operation) => !["list", "collections"].includes(operation));
const optionsOf = (more: Partial<DaemonOptions> = {}): DaemonOptions => ({
  stateDir: world.stateDir,
  service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key },
  sources: [world.source()],
  sync: syncSettings({ settleMs: 0 }),
  ...more,
});
const recover = (dryRun = false): Promise<RecoverReport> => recoverLedger(optionsOf(), { dryRun });
const mix = (): void => {
  world.write("a.txt", "text a");
  world.write("b/c.md", "# Title of c\n\ntext c");
  world.write("d.pdf", PDF);
  world.write("e.url", "[InternetShortcut]\nURL=https://example.com");
};

describe.each([{ collections: true }, { collections: true, paged: true }, {}])(
  "a lost ledger, and a service of %o",
  (options) => {
    beforeEach(async () => {
      await world.end();
      await open(options);
    });

    it("a lost ledger is rebuilt by adopting what exists: nothing twice, and what is equal is not sent", async () => {
      mix();
      await world.sync();
      const before = ids();
      loseLedger();
      await world.sync();
      expect(ids()).toEqual(before);
      const number = world.service.requests.length;
      await world.sync();
      expect(world.service.requests.length).toBe(number);
    });

    it("a lost ledger sends what changed meanwhile to the existing resources, and creates what is new", async () => {
      mix();
      await world.sync();
      const before = ids();
      loseLedger();
      world.write("a.txt", "another text");
      world.write("d.pdf", Buffer.concat([PDF, Buffer.from("more")]));
      world.write("new.txt", "new");
      const warnings: Error[] = [];
      await world.sync({ onWarning: (error) => warnings.push(error) });
      expect(warnings).toMatchObject([
        {
          code: "taken_over",
          subject: world.root,
          message: expect.stringMatching(
            /had 4 resources .* taken over, 2 of them with another text/,
          ) as string,
        },
      ]);
      expect(ids()).toEqual({ ...before, "new.txt": expect.any(String) as string });
      expect(world.service.live().find(({ title }) => title === "a.txt")?.content).toBe("another text");
      const number = world.service.requests.length;
      await world.sync();
      expect(world.service.requests.length).toBe(number);
    });

    it("a lost ledger leaves one resource of a folder with one file", async () => {
      world.write("a.txt", "text");
      await world.sync();
      const before = ids();
      loseLedger();
      await world.sync();
      expect(ids()).toEqual(before);
    });

    it("a lost ledger pairs equal files with as many resources", async () => {
      for (const name of ["1", "2", "3"]) world.write(`${name}.md`, "# Same\n\ntext");
      const sources = [world.source({ rules: [{ match: "**", description: "same" }] })];
      await world.sync({ sources });
      const before = world.service.live().map(({ _id }) => _id);
      rmSync(join(world.root, "3.md"));
      loseLedger();
      await world.sync({ sources });
      expect(world.service.live().map(({ _id }) => _id)).toEqual(before);
      const number = world.service.requests.length;
      await world.sync({ sources });
      expect(world.service.requests.length).toBe(number);
    });
  },
);

describe("a lost ledger", () => {
  it("a lost ledger matches files later that could not be read before", async () => {
    mix();
    await world.sync();
    const before = ids();
    loseLedger();
    // An ignore file of this size is not read: what it would leave out is unknown, and nothing below it is checked.
    world.write("b/.kbsyncignore", "#".repeat(2 * 1024 * 1024));
    await world.sync();
    rmSync(join(world.root, "b/.kbsyncignore"));
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.service.live()).toHaveLength(4);
    const number = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(number);
  });

  it.each([
    { file: "a shortcut without an address", path: "e.url", text: "no shortcut" },
    { file: "a PDF that became empty", path: "d.pdf", text: "" },
    { file: "a text that became binary", path: "a.txt", text: "\0\u0001\u0002" },
  ])("a lost ledger gives $file its resource once it is a document again", async ({ path, text }) => {
    mix();
    await world.sync();
    const before = ids();
    const document = readFileSync(join(world.root, path));
    loseLedger();
    world.write(path, text);
    await world.sync();
    expect(ids()).toEqual(before);
    world.write(path, document);
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.service.live()).toHaveLength(4);
  });

  it.each([
    { file: "became binary", text: "\0\u0001\u0002" },
    { file: "became empty", text: "" },
  ])(
    "a lost ledger gives a text that $file, and whose description is in it, its resource once it is a document again",
    async ({ text }) => {
      const document = "---\ndescription: of the text itself\n---\n# Title\n\ntext";
      world.write("a.md", document);
      world.write("b.txt", "text b");
      await world.sync();
      const before = ids();
      loseLedger();
      world.write("a.md", text);
      await world.sync();
      world.write("a.md", document);
      await world.sync();
      expect(ids()).toEqual(before);
      expect(world.service.live()).toHaveLength(2);
    },
  );

  it("a lost ledger sends no equal file again", async () => {
    mix();
    await world.sync();
    loseLedger();
    const number = world.service.requests.length;
    await world.sync();
    expect(sentSince(number)).toEqual(["download"]);
    expect(world.activity.filter(({ action }) => action === "adopt")).toHaveLength(4);
  });

  it("a new folder costs two lists, before anything is sent", async () => {
    mix();
    await world.sync();
    const operations = world.service.requests.map(({ operation }) => operation);
    expect(operations.slice(0, 3)).toEqual(["collections", "list", "list"]);
    expect(operations.filter((operation) => operation === "list")).toHaveLength(2);
  });

  it("a new folder costs two lists at a service that returns the collection's id only for a create", async () => {
    await world.end();
    await open({});
    mix();
    await world.sync();
    const operations = world.service.requests.map(({ operation }) => operation);
    expect(operations.slice(0, 4)).toEqual(["collections", "create", "list", "list"]);
    expect(operations.filter((operation) => operation === "create")).toHaveLength(4);
    expect(operations).not.toContain("delete");
  });

  it("a lost ledger adopts nothing of another owner, and nothing by its title alone", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await world.sync();
    loseLedger();
    for (const resource of world.service.live()) {
      if (resource.title === "a.txt") resource.ownerId = "somebody";
      else resource.description = "another description";
    }
    await world.sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["a.txt", "a.txt", "b.txt", "b.txt"]);
  });

  it("a lost ledger gives a file with other chunk settings a new resource, and the old one is deleted", async () => {
    world.write("a.txt", "text a");
    await world.sync({ sources: [world.source({ settings: { chunkSize: 500 } })] });
    const [old] = world.service.live();
    loseLedger();
    await world.sync();
    expect(world.service.live()).toMatchObject([{ title: "a.txt", settings: { chunkSize: 1000 } }]);
    expect(world.service.live()[0]?._id).not.toBe(old?._id);
  });

  it("a lost ledger sends no request to another host for a file that only the list names", async () => {
    world.write("d.pdf", PDF);
    await world.sync();
    const [resource] = world.service.live();
    if (resource === undefined) throw new Error("nothing was made");
    resource.url = world.service.url.replace("127.0.0.1", "localhost") + "/files/elsewhere";
    loseLedger();
    const number = world.service.requests.length;
    await world.sync();
    expect(sentSince(number)).toEqual(["upload", "update"]);
    expect(world.service.live()).toHaveLength(1);
  });

  it("a ledger that was deleted without its log is a new one nevertheless", async () => {
    mix();
    const log = join(world.stateDir, "ledger.db-wal");
    const daemon = world.daemon();
    await daemon.syncOnce();
    cpSync(log, `${log}.old`);
    await daemon.close();
    const before = ids();
    rmSync(join(world.stateDir, "ledger.db"));
    renameSync(`${log}.old`, log);
    world.activity.length = 0;
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.activity.map(({ action }) => action)).toEqual(["adopt", "adopt", "adopt", "adopt"]);
  });
});

describe("another folder in the source's place while the ledger is lost", () => {
  it("another folder in the source's place while the ledger is lost leaves the right one its resources when it is back", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await world.sync();
    const before = ids();
    loseLedger();
    renameSync(world.root, `${world.root}-away`);
    mkdirSync(world.root);
    world.write("stranger.txt", "of another folder");
    await world.sync();
    rmSync(world.root, { recursive: true });
    renameSync(`${world.root}-away`, world.root);
    await world.sync();
    await world.offline.approve();
    await world.sync();
    expect(ids()).toEqual(before);
  });
});

describe("recover", () => {
  it("recover matches files later that were missing because another folder was in their place", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("b.txt", "text b");
    await world.sync();
    const before = ids();
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);

    renameSync(world.root, `${world.root}-away`);
    mkdirSync(world.root);
    await recover();
    rmSync(world.root, { recursive: true });
    renameSync(`${world.root}-away`, world.root);
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.service.live()).toHaveLength(2);
  });

  it("recover matches files later that were missing because the folder was empty", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const before = ids();
    loseLedger();
    renameSync(join(world.root, "a.txt"), `${world.root}-a.txt`);
    await recover();
    renameSync(`${world.root}-a.txt`, join(world.root, "a.txt"));
    await world.sync();
    expect(ids()).toEqual(before);
  });

  it("recover does not rename a row when another folder with an equal file is in the source's place", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("b.txt", "text b");
    await world.sync();
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    renameSync(world.root, `${world.root}-away`);
    mkdirSync(world.root);
    world.write("stranger.txt", "text a");
    await recover();
    const db = openSqlite(join(world.stateDir, "ledger.db"));
    expect(db.prepare("SELECT path FROM files").pluck().all()).toContain("a.txt");
    db.close();
  });

  it("recover gives each file its own resource when one took another's name since a backup", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    renameSync(join(world.root, "a.txt"), join(world.root, "b.txt"));
    await world.sync();
    world.write("a.txt", "text of another file");
    // Another inode and text: nothing on the disk shows that this file was once the other one.
    world.write("new.txt", "text a, changed");
    renameSync(join(world.root, "new.txt"), join(world.root, "b.txt"));
    await world.sync();
    const before = world.service.live().map(({ _id, content }) => ({ _id, content }));
    expect(before).toHaveLength(2);
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    const creates = world.service.count("create");
    await recover();
    await world.sync();
    expect(world.service.live()).toMatchObject(before);
    expect(world.service.count("create")).toBe(creates);
  });

  it("a file that was renamed onto a held one's path since a backup keeps its resource", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text of b");
    await world.sync();
    // Elsewhere they keep their inode numbers.
    renameSync(join(world.root, "a.txt"), `${world.root}-a.txt`);
    renameSync(join(world.root, "b.txt"), `${world.root}-b.txt`);
    await world.sync();
    world.write("b.txt", "text of b");
    await world.sync();
    const { "b.txt": kept } = ids();
    distrustRestored(join(world.stateDir, "ledger.db"), Date.now());
    renameSync(join(world.root, "b.txt"), join(world.root, "a.txt"));
    const stop = new AbortController();
    const daemon = world.daemon({ timing: { burstGapMs: 5000 } });
    const ended = daemon.run({ signal: stop.signal });
    // The other one's delete is held as before.
    const titles = (): unknown => world.service.live().map(({ title, _id }) => [title, _id === kept]);
    await until(
      () => world.service.live().some(({ title, _id }) => title === "a.txt" && _id === kept),
      () => JSON.stringify(titles()),
    );
    expect(titles()).toEqual([
      ["a.txt", false],
      ["a.txt", true],
    ]);
    stop.abort();
    await ended;
    await daemon.close();
  });

  it("recover gives a changed file its resource when the restored ledger is from before the first pass with files", async () => {
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("a.txt", "text a");
    await world.sync();
    const before = ids();
    world.write("a.txt", "changed while no daemon ran");
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    const db = openSqlite(join(world.stateDir, "ledger.db"));
    db.prepare("UPDATE meta SET value = value - 3600000 WHERE name = 'born_ms'").run();
    db.close();
    await recover();
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.service.live()).toMatchObject([{ content: "changed while no daemon ran" }]);
  });

  it.each<[string, Partial<FakeResource>]>([
    ["the service has not processed", { status: "error" }],
    ["has another title at the service", { title: "renamed by hand" }],
    ["the service shows at an address elsewhere", { url: "https://example.com/d.pdf" }],
    ["the service shows at an address where there is nothing", { url: "/uploads/none.pdf" }],
  ])("recover sends a file again whose document %s", async (_name, altered) => {
    world.write("d.pdf", PDF);
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("b.txt", "text b");
    await world.sync();
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    const resource = world.service.live().find(({ title }) => title === "d.pdf");
    if (resource === undefined) throw new Error("nothing was made");
    Object.assign(resource, altered);
    expect(await recover()).toMatchObject({ sources: [{ adopted: 1, differing: 1 }] });
    const number = world.service.requests.length;
    await world.sync();
    expect(sentSince(number)).toEqual(["upload", "update"]);
    expect(ids()["d.pdf"]).toBe(resource._id);
  });

  it("recover compares a row with its own file, also when another one has taken its name since", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("b.txt", "text b");
    await world.sync();
    const swap = [
      ["a.txt", "aside"],
      ["b.txt", "a.txt"],
      ["aside", "b.txt"],
    ] as const;
    for (const [from, to] of swap) renameSync(join(world.root, from), join(world.root, to));
    await world.sync();
    const before = ids();
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    const number = world.service.requests.length;
    await recover();
    await world.sync();
    expect(ids()).toEqual(before);
    expect(sentSince(number).filter((operation) => operation !== "search")).toEqual([]);
  });

  it("recover leaves a file its document that was renamed onto a path whose create had no answer in the old ledger", async () => {
    world.write("m.txt", "text m");
    await world.sync();
    const { "m.txt": kept } = ids();
    const crashAt = async (step: string): Promise<void> => {
      const daemon = world.daemon({
        step: (name) => {
          if (name.startsWith(step)) throw new Error("a crash");
        },
      });
      await daemon.syncOnce().catch(() => undefined);
      await daemon.close().catch(() => undefined);
    };
    world.write("z.txt", "text z");
    await crashAt("create:answered");
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    await world.sync();
    renameSync(join(world.root, "m.txt"), join(world.root, "z.txt"));
    await crashAt("delete");
    expect(world.service.live()).toMatchObject([{ title: "z.txt" }, { title: "z.txt" }]);
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    await recover();
    await world.sync();
    expect(world.service.live()).toMatchObject([{ _id: kept, content: "text m" }]);
  });

  it("recover finds the resource of a file whose kind has changed since", async () => {
    world.write("a.txt", PDF);
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("a.txt", "a text");
    const daemon = world.daemon({
      step: (name) => {
        if (name === "create:answered") throw new Error("a crash");
      },
    });
    await daemon.syncOnce().catch(() => undefined);
    await daemon.close().catch(() => undefined);
    expect(world.service.live()).toHaveLength(2);
    const made = world.service.live().find(({ content }) => content === "a text")?._id;
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    await recover();
    await world.sync();
    expect(ids()).toEqual({ "a.txt": made });
    expect(world.service.live()).toHaveLength(1);
  });

  it("recover sends a moved file whole if the old ledger has not seen its text change", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    world.write("c.txt", "text c");
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("a.txt", "changed, and nobody saw it put back");
    renameSync(join(world.root, "b.txt"), join(world.root, "b since.txt"));
    await world.sync();
    const before = ids();
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);
    world.write("a.txt", "text a");
    renameSync(join(world.root, "a.txt"), join(world.root, "a moved.txt"));

    await recover();
    const number = world.service.requests.length;
    await world.sync();
    expect(world.service.live().map(({ title, content }) => [title, content])).toEqual([
      ["a moved.txt", "text a"],
      ["b since.txt", "text b"],
      ["c.txt", "text c"],
    ]);
    expect(ids()["a moved.txt"]).toBe(before["a.txt"]);
    const sent = world.service.requests.slice(number).filter(({ operation }) => operation === "update");
    // Of the other file only the name is sent.
    expect(sent.filter(({ body }) => body?.["content"] !== undefined)).toHaveLength(1);
  });

  it("recover does not take a resource from a file that received it from one that is gone since", async () => {
    world.write("a.txt", "text a");
    world.write("c.txt", "text c");
    await world.sync();
    const before = ids()["a.txt"];
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("a.txt", "changed since");
    await world.sync();
    rmSync(join(world.root, "a.txt"));
    world.write("b.txt", "changed since");
    await world.sync();
    expect(ids()["b.txt"]).toBe(before);
    rmSync(world.stateDir, { recursive: true });
    renameSync(backup, world.stateDir);

    await recover();
    const number = world.service.requests.length;
    await world.sync();
    expect(ids()["b.txt"]).toBe(before);
    expect(sentSince(number)).toEqual([]);
  });

  const ledgerPath = (): string => join(world.stateDir, "ledger.db");
  const damage = (): void => writeFileSync(ledgerPath(), "no database at all");
  const predate = (): void => {
    const db = new Database(ledgerPath());
    db.pragma("user_version = 16");
    db.pragma("journal_mode = DELETE");
    db.close();
  };

  it.each([
    ["a damaged ledger", damage, "ledger_damaged"],
    ["a ledger from before the first release", predate, "ledger_older"],
  ])("recover renames %s, adopts, and reports what is left to send", async (_, spoil, code) => {
    mix();
    await world.sync();
    const before = ids();
    spoil();
    const refused = readFileSync(ledgerPath());
    expect(() => world.daemon()).toThrow(
      expect.objectContaining({
        code,
        hint: expect.stringContaining("recover") as string,
      }) as Error,
    );
    world.write("a.txt", "another text");
    world.write("new.txt", "new");
    const report = await recover();
    expect(report).toMatchObject({ sources: [{ listed: true, adopted: 3, differing: 1, missing: 0 }] });
    expect(report.planned.map(({ action, path }) => `${action} ${path}`).toSorted()).toEqual([
      "create new.txt",
      "update a.txt",
    ]);
    expect(readFileSync(report.setAside ?? "").equals(refused)).toBe(true);
    expect(report.setAside).toContain("ledger.db.set-aside-");
    const number = world.service.requests.length;
    await world.sync();
    expect(sentSince(number).toSorted()).toEqual(["create", "update"]);
    expect(ids()).toEqual({ ...before, "new.txt": expect.any(String) as string });
  });

  it.each([
    ["a damaged ledger", damage, "ledger_damaged"],
    ["a ledger from before the first release", predate, "ledger_older"],
  ])("recover --dry-run reports the same of %s and changes nothing", async (_, spoil, code) => {
    mix();
    await world.sync();
    spoil();
    const files = readdirSync(world.stateDir).toSorted();
    const temporary = join(world.stateDir, "..", "temporary");
    mkdirSync(temporary);
    vi.stubEnv("TMPDIR", temporary);
    expect(await recover(true)).toMatchObject({ sources: [{ adopted: 4, differing: 0 }], planned: [] });
    vi.unstubAllEnvs();
    // The copy of the ledger is gone.
    expect(readdirSync(temporary)).toEqual([]);
    expect(readdirSync(world.stateDir).toSorted()).toEqual(files);
    expect(() => world.daemon()).toThrow(expect.objectContaining({ code }) as Error);
  });

  it("recover updates an old ledger: what was sent since is neither sent again nor created twice", async () => {
    for (const name of ["same", "edited", "replaced", "renamed", "deleted", "lost"])
      world.write(`${name}.txt`, `text ${name}`);
    await world.sync();
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    world.write("edited.txt", "edited since");
    world.write("new.txt", "new since");
    renameSync(join(world.root, "renamed.txt"), join(world.root, "renamed since.txt"));
    rmSync(join(world.root, "deleted.txt"));
    world.write("replaced.txt", PDF);
    await world.sync();
    const before = ids();
    rmSync(world.stateDir, { recursive: true });
    cpSync(backup, world.stateDir, { recursive: true });
    rmSync(backup, { recursive: true });

    const report = await recoverLedger(optionsOf());
    expect(report.setAside).toBeNull();
    const number = world.service.requests.length;
    await world.sync();
    expect(ids()).toEqual(before);
    expect(sentSince(number).filter((operation) => operation === "create" || operation === "upload")).toEqual(
      [],
    );
    const after = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(after);
  });

  it("recover changes nothing in a sound ledger that is up to date", async () => {
    mix();
    await world.sync();
    expect(await recover()).toMatchObject({
      setAside: null,
      sources: [{ adopted: 0, differing: 0, missing: 0, surplus: { count: 0 } }],
      planned: [],
    });
    const number = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(number);
  });

  it("recover names what matches no file and does not touch it", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await world.sync();
    rmSync(join(world.root, "b.txt"));
    damage();
    expect(await recover()).toMatchObject({
      sources: [{ surplus: { count: 1, first: [{ title: "b.txt" }] } }],
    });
    await world.sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["a.txt", "b.txt"]);
  });

  it.each(["list", "adopt"])("recover is interrupted by its signal at the first %s", async (step) => {
    world.write("a.txt", "text a");
    await world.sync();
    loseLedger();
    const stop = new AbortController();
    const stopAt = (at: string): void => {
      if (at === step) stop.abort(new Error("enough"));
    };
    world.service.fault = ({ operation }) => {
      stopAt(operation);
      return undefined;
    };
    // After the last file was adopted, the remaining work is planned.
    const options = optionsOf({ onActivity: ({ action }) => stopAt(action) });
    const number = world.service.requests.length;
    await expect(recoverLedger(options, { signal: stop.signal })).rejects.toThrow("enough");
    expect(world.service.requests.slice(number).filter(({ operation }) => operation === "list")).toHaveLength(
      step === "list" ? 1 : 2,
    );
  });

  it("recover is refused while a daemon works there", async () => {
    world.write("a.txt", "text a");
    const daemon = world.daemon();
    await daemon.syncOnce();
    await expect(recover()).rejects.toMatchObject({ code: "state_locked" });
    await daemon.close();
  });
});

describe("an old ledger that nobody reported", () => {
  /** Restores the ledger, or the whole state folder, to its state before `change`. */
  const restoreAfter = async (
    names: (name: string) => boolean,
    change: () => Promise<void>,
  ): Promise<void> => {
    const backup = `${world.stateDir}-backup`;
    cpSync(world.stateDir, backup, { recursive: true });
    await change();
    for (const name of readdirSync(world.stateDir).filter(names)) rmSync(join(world.stateDir, name));
    for (const name of readdirSync(backup).filter(names))
      cpSync(join(backup, name), join(world.stateDir, name));
    rmSync(backup, { recursive: true });
  };

  it.each([
    ["the ledger alone", (name: string) => name.startsWith("ledger.db")],
    ["the whole state folder", () => true],
  ])("an old ledger creates nothing a second time if %s was restored", async (_what, names) => {
    for (const name of ["same", "edited", "replaced", "deleted"]) world.write(`${name}.txt`, `text ${name}`);
    await world.sync();
    await restoreAfter(names, async () => {
      mix();
      world.write("edited.txt", "edited since");
      world.write("replaced.txt", PDF);
      rmSync(join(world.root, "deleted.txt"));
      await world.sync();
    });
    const before = ids();
    const number = world.service.requests.length;
    const warnings: string[] = [];
    await world.sync({ onWarning: ({ message }) => warnings.push(message) });
    expect(warnings).toEqual([expect.stringContaining("older than")]);
    expect(ids()).toEqual(before);
    expect(sentSince(number).filter((operation) => ["create", "upload"].includes(operation))).toEqual([]);
    const after = world.service.requests.length;
    await world.sync({ onWarning: ({ message }) => warnings.push(message) });
    expect([world.service.requests.length, warnings.length]).toEqual([after, 1]);
  });

  it.each([
    { how: "with the times of the backup", keepsTimes: true },
    { how: "with new times", keepsTimes: false },
  ])(
    "an old ledger creates nothing a second time if its whole folder was restored over the files, $how",
    async (backup) => {
      world.write("a.txt", "text a");
      await world.sync();
      const kept = new Map(
        readdirSync(world.stateDir, { withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ name }) => [name, readFileSync(join(world.stateDir, name))]),
      );
      world.write("b.txt", "since then");
      await world.sync();
      const before = ids();
      for (const [name, bytes] of kept) writeFileSync(join(world.stateDir, name), bytes);
      // The backup is an hour old.
      const mark = markFile(world.stateDir);
      const noted = JSON.parse(readFileSync(mark, "utf8")) as { atMs: number };
      const atMs = noted.atMs - 3_600_000;
      writeFileSync(mark, JSON.stringify({ ...noted, atMs }));
      if (backup.keepsTimes) utimesSync(mark, atMs / 1000, atMs / 1000);
      const warnings: string[] = [];
      await world.sync({ onWarning: ({ message }) => warnings.push(message) });
      expect(warnings).toEqual([expect.stringContaining("older than")]);
      expect(ids()).toEqual(before);
      const after = world.service.requests.length;
      await world.sync({ onWarning: ({ message }) => warnings.push(message) });
      expect([world.service.requests.length, warnings.length]).toEqual([after, 1]);
    },
  );

  it("an old ledger creates again what must have other chunks, though its text was changed since the backup", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    await restoreAfter(
      (name) => name.startsWith("ledger.db"),
      async () => {
        world.write("a.txt", "changed since");
        await world.sync();
      },
    );
    const sources = [world.source({ settings: { chunkSize: 300 } })];
    await world.sync({ sources });
    expect(world.service.live()).toMatchObject([{ content: "changed since", settings: { chunkSize: 300 } }]);
  });

  it("an old ledger does not fill a service that lost most of what the ledger knows, until a person agrees", async () => {
    for (let n = 1; n <= 10; n += 1) world.write(`${n}.txt`, `text ${n}`);
    await world.sync();
    await restoreAfter(
      (name) => name.startsWith("ledger.db"),
      async () => {
        world.write("after.txt", "after the backup");
        await world.sync();
      },
    );
    const gone = world.service.live();
    for (const resource of gone) resource.isDeleted = true;
    const created = world.service.count("create");
    const status = async (): Promise<unknown> => {
      await world.sync();
      return readStatus(world.stateDir, 0)?.sources;
    };
    for (let time = 1; time <= 3; time += 1) {
      expect(await status()).toMatchObject([
        { halted: true, holdReason: expect.stringContaining("has lost 10 of 10") as string },
      ]);
    }
    expect(world.service.count("create")).toBe(created);

    for (const resource of gone.slice(0, 10)) resource.isDeleted = false;
    const back = gone.find(({ title }) => title === "3.txt");
    if (back === undefined) throw new Error("3.txt has no resource");
    back.content = "changed since the backup";
    await status();
    expect(world.service.live().map(({ content }) => content)).toContain("text 3");
    expect(world.service.live()).toHaveLength(11);

    for (const resource of world.service.live()) resource.isDeleted = true;
    await recoverLedger(optionsOf());
    expect(await status()).toMatchObject([{ halted: true }]);
    await world.offline.approve();
    expect(await status()).toMatchObject([{ halted: false, searchable: 11 }]);
    expect(world.service.live()).toHaveLength(11);
  });

  it("an old ledger does not fill a service that loses its resources after a list that omitted some", async () => {
    for (let n = 1; n <= 20; n += 1) world.write(`${n}.txt`, `text ${n}`);
    await world.sync();
    await restoreAfter(
      (name) => name.startsWith("ledger.db"),
      async () => {
        world.write("after.txt", "after the backup");
        await world.sync();
      },
    );
    for (const resource of world.service.live().slice(0, 8)) resource.ownerId = "not in the list";
    const created = world.service.count("create");
    world.service.fault = ({ operation }) => {
      if (operation === "update") for (const resource of world.service.live()) resource.isDeleted = true;
      return undefined;
    };
    await world.sync();
    expect(readStatus(world.stateDir, 0)?.sources).toMatchObject([{ halted: true }]);
    expect(world.service.count("create") - created).toBeLessThanOrEqual(3);
  });

  it("an old ledger is known as such until it was compared, through a crash at the list", async () => {
    world.write("a.txt", "text a");
    await world.sync();
    await restoreAfter(
      (name) => name.startsWith("ledger.db"),
      async () => {
        world.write("b.txt", "text b");
        await world.sync();
      },
    );
    const before = ids();
    const step = (name: string): void => {
      if (name === "list:answered") throw new Error("crash");
    };
    await world.sync({ step }).catch(() => undefined);
    await world.sync();
    expect(ids()).toEqual(before);
    expect(world.service.count("create")).toBe(2);
  });
});
