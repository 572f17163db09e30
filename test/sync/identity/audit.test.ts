import { rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import { withoutMarker } from "../../../src/wire/marker.ts";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { readMarker } from "../../../src/sync/plan/marker.ts";
import type { FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";
import { documentsOf, promptService } from "./fixture.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  for (let n = 0; n < 8; n += 1) world.write(`${n}.txt`, `text ${n}`);
  await world.sync();
});
afterEach(() => world.end());

/** Audits as `verify` does, then runs a pass. Returns the report. */
const audit = async (repair = true, isPrompt = true): Promise<AuditReport> => {
  const daemon = world.daemon(isPrompt ? { service: promptService(world) } : {});
  try {
    const report = await daemon.audit({ repair });
    await daemon.syncOnce();
    return report;
  } finally {
    await daemon.close();
  }
};
const document = (path: string): FakeResource => {
  const [found] = documentsOf(world, path);
  if (found === undefined) throw new Error(`no document of ${path}`);
  return found;
};
/** A person at the service's page changes a document. */
const edit = (path: string, changes: Partial<FakeResource>): FakeResource =>
  Object.assign(document(path), { updatedAt: new Date(Date.now() + 1000).toISOString(), ...changes });
const add = (resource: FakeResource): void => void world.service.resources.set(resource._id, resource);
const COPY = "f".repeat(24);
const words = (report: AuditReport): unknown[] =>
  report.findings.map(({ path, kind, repaired }) => [path, kind, repaired]);

it("finds nothing where all agree, and sends nothing", async () => {
  const before = world.service.requests.length;
  expect(await audit()).toMatchObject({ findings: [], agrees: true, left: 0, foreign: 0 });
  expect(world.service.requests.slice(before).filter(({ method }) => method !== "GET")).toEqual([]);
});

describe("a list that shows a document as it was before its last change", () => {
  it("changes nothing where that came while the list was read", async () => {
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle);
    const answered = Promise.withResolvers<void>();
    world.service.fault = ({ operation }) =>
      operation === "list" ? { kind: "answer-late", until: answered.promise } : undefined;
    const lists = world.service.count("list");
    const report = daemon.audit({ repair: true });
    await until(() => world.service.count("list") > lists);
    world.write("3.txt", "text 3, edited");
    await until(() => daemon.status().idle && document("3.txt").content === "text 3, edited");
    answered.resolve();
    expect((await report).findings).toEqual([]);
    await until(() => daemon.status().idle);
    stop.abort();
    await ended;
    await world.sync();
    expect(world.service.count("update")).toBe(1);
  });
});

it("sends no file again whose address the service shows in another form", async () => {
  world.write("report.pdf", "%PDF-1.4 pages 1");
  await world.sync();
  edit("report.pdf", { url: "https://files.example/report.pdf?signature=1" });
  expect(await audit()).toMatchObject({ findings: [], agrees: true });
});

describe("what a person did at the service", () => {
  it.each<[string, Partial<FakeResource>]>([
    ["text", { content: "edited" }],
    ["title", { title: "edited" }],
    ["description", { description: "edited" }],
  ])("is undone where it is another %s", async (_what, changes) => {
    const before = { ...document("3.txt") };
    edit("3.txt", changes);
    expect(words(await audit())).toEqual([["3.txt", "altered", true]]);
    const { content, title, description } = world.service.resources.get(before._id) ?? before;
    expect({ content, title, description }).toEqual({
      content: before.content,
      title: before.title,
      description: before.description,
    });
    expect(await audit()).toMatchObject({ findings: [], agrees: true });
  });

  it("is undone where a link leads elsewhere", async () => {
    world.write("l.url", "[InternetShortcut]\nURL=https://example.org/1\n");
    await world.sync();
    const link = document("l.url");
    Object.assign(link, { url: "https://example.org/2" });
    expect(words(await audit())).toEqual([["l.url", "altered", true]]);
    expect(link.url).toBe("https://example.org/1");
  });

  it("is undone as often as a marker is removed", async () => {
    for (let times = 0; times < 2; times += 1) {
      edit("3.txt", { description: "3.txt" });
      expect(words(await audit())).toEqual([["3.txt", "altered", true]]);
    }
    expect(readMarker(document("3.txt").description).kind).toBe("whole");
  });

  it("is undone also once a ledger was compared that seemed to be old", async () => {
    const daemon = world.daemon({ service: promptService(world) });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle);
    // As after a comparison while the folder could not be read.
    const db = new Database(ledgerFile(world.stateDir));
    db.exec("UPDATE sources SET adopted = 2");
    db.close();
    await daemon.audit({ repair: true });
    edit("3.txt", { content: "edited" });
    expect(words(await daemon.audit({ repair: true }))).toEqual([["3.txt", "altered", true]]);
    stop.abort();
    await ended;
  });

  it("is only reported without a repair", async () => {
    edit("3.txt", { content: "edited" });
    const before = world.service.count("update");
    const daemon = world.daemon({ service: promptService(world) });
    expect(words(await daemon.audit())).toEqual([["3.txt", "altered", false]]);
    await daemon.close();
    expect(world.service.count("update")).toBe(before);
  });

  it("is reported where the service lost a description that it acknowledged", async () => {
    const found = Object.assign(document("3.txt"), { description: "before the update" });
    expect(words(await audit())).toEqual([["3.txt", "altered", false]]);
    expect(found.description).toBe("before the update");
  });

  it("is undone where a document was deleted", async () => {
    const { _id } = edit("3.txt", { isDeleted: true });
    expect(words(await audit())).toEqual([["3.txt", "missing", true]]);
    expect(document("3.txt")._id).not.toBe(_id);
    expect([document("3.txt").content, world.service.live().length]).toEqual(["text 3", 8]);
  });

  it("deletes a copy with the document's own text, and keeps the document", async () => {
    const { _id } = document("3.txt");
    add({ ...document("3.txt"), _id: COPY });
    expect(words(await audit())).toEqual([["3.txt", "twice", true]]);
    expect(documentsOf(world, "3.txt").map((each) => each._id)).toEqual([_id]);
  });

  it("is judged later where the list may be older than what was just sent", async () => {
    edit("3.txt", { title: "before", updatedAt: document("3.txt").createdAt });
    const before = world.service.requests.length;
    const report = await audit(true, false);
    expect([report.findings, report.sources[0]?.unjudged]).toEqual([[], 1]);
    expect(world.service.requests.slice(before).filter(({ method }) => method !== "GET")).toEqual([]);
  });

  it("leaves a copy with another text alone, and says so", async () => {
    add({ ...document("3.txt"), _id: COPY, content: "a person's own words" });
    expect(words(await audit())).toEqual([["3.txt", "twice", false]]);
    expect(documentsOf(world, "3.txt")).toHaveLength(2);
  });

  it("gives a copy with another text to a file with those bytes, and sends the file's own text", async () => {
    add({ ...document("3.txt"), _id: COPY, content: "a person's own words" });
    rmSync(join(world.root, "3.txt"));
    await world.sync();
    world.write("new.txt", "text 3");
    await audit();
    expect(document("new.txt")).toMatchObject({ _id: COPY, content: "text 3" });
  });

  it("holds the source where another kbsync wrote a copy, which is left alone", async () => {
    const { description, ...copy } = document("3.txt");
    add({ ...copy, _id: COPY, description: description.replace(/\.[a-z2-7]{8}\]$/, ".aaaaaaaa]") });
    expect((await audit()).sources[0]?.lost).toContain("another kbsync (aaaaaaaa) writes 1 document");
    expect(documentsOf(world, "3.txt")).toHaveLength(2);
  });
});

describe("what the service lost", () => {
  it("is sent once more where it answered that it stored a text, and is reported where it loses that, too", async () => {
    const before = { ...document("3.txt") };
    world.write("3.txt", "a later text");
    await world.sync();
    const lose = (): void => {
      edit("3.txt", {
        content: before.content ?? "",
        description: before.description,
        updatedAt: before.updatedAt,
      });
    };
    lose();
    const daemon = world.daemon({ service: promptService(world) });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await daemon.whenIdle();
    const first = await daemon.audit({ repair: true });
    expect(words(first)).toEqual([["3.txt", "altered", true]]);
    await until(() => document("3.txt").content === "a later text" && daemon.status().idle);
    lose();
    const second = await daemon.audit({ repair: true });
    stop.abort();
    await ended;
    expect(words(second)).toEqual([["3.txt", "altered", false]]);
    expect(second.findings[0]?.what).toContain("answered twice that it stored this version");
  });

  it("is deleted again where a backup brings it back, and no file is sent for it", async () => {
    rmSync(join(world.root, "3.txt"));
    const { _id } = document("3.txt");
    await world.sync();
    const restored = world.service.resources.get(_id);
    if (restored === undefined) throw new Error("no document");
    restored.isDeleted = false;
    const report = await audit();
    expect(report.findings).toMatchObject([{ docId: _id, kind: "returned", repaired: true }]);
    expect(world.service.live()).toHaveLength(7);
  });

  it("is no finding while its delete waits, because the service refuses it", async () => {
    rmSync(join(world.root, "3.txt"));
    world.service.fault = ({ operation }) =>
      operation === "delete"
        ? { kind: "answer", status: 422, body: '{"success":false,"message":"no"}' }
        : undefined;
    await world.sync();
    expect(await audit()).toMatchObject({ findings: [] });
    world.service.fault = () => undefined;
    await world.sync();
    expect(world.service.live()).toHaveLength(7);
  });

  it("is sent again only once a person approved it, where it is most of all", async () => {
    for (const each of world.service.live().slice(0, 6)) each.isDeleted = true;
    const report = await audit();
    expect(report.sources[0]?.lost).toBe(
      "the service has lost 6 of 8 resources; was it reset, or restored from a backup?",
    );
    expect(world.service.live()).toHaveLength(2);
    await world.offline.approve();
    await world.sync({ service: promptService(world) });
    expect(world.service.live()).toHaveLength(8);
  });
});

describe("documents of others", () => {
  it("are counted, and neither changed nor deleted", async () => {
    const foreign = { ...document("3.txt"), _id: COPY, description: "a person's own" };
    add(foreign);
    expect(await audit()).toMatchObject({ foreign: 1, agrees: true, left: 0 });
    expect(world.service.resources.get(COPY)).toEqual(foreign);
  });
});

it("gives each document a description that names its file, and a text for people before it", () => {
  const { description } = document("3.txt");
  expect([withoutMarker(description), readMarker(description).kind]).toEqual(["3.txt", "whole"]);
});

describe("a change of a source's owner", () => {
  it("clears what the former owner has of its files, also what no row knows", async () => {
    const copy = { ...document("3.txt"), _id: COPY };
    const sources = [world.source({ ownerId: "another owner" })];
    const service = promptService(world);
    await world.sync({ sources, service });
    add(copy);
    const daemon = world.daemon({ sources, service });
    const report = await daemon.audit({ repair: true });
    await daemon.syncOnce();
    await daemon.close();
    expect(words(report)).toEqual([["3.txt", "twice", true]]);
    expect(world.service.live().map(({ ownerId }) => ownerId)).toEqual(
      Array.from({ length: 8 }, () => "another owner"),
    );
  });
});

describe("a document of a file that is gone, where nothing is deleted", () => {
  const never = () => ({ sources: [world.source({ deletes: "never" })] });
  const verify = async (repair: boolean): Promise<AuditReport> => {
    const daemon = world.daemon({ ...never(), service: promptService(world) });
    try {
      return await daemon.audit({ repair });
    } finally {
      await daemon.close();
    }
  };
  const kept = (): number | undefined => readStatus(world.stateDir, 100)?.sources[0]?.kept;
  beforeEach(async () => {
    rmSync(join(world.root, "0.txt"));
    await world.sync(never());
  });

  it("agrees while the service has it", async () => {
    expect(await verify(true)).toMatchObject({ findings: [], agrees: true });
    expect(kept()).toBe(1);
  });

  it("is reported when the service no longer has it, and forgotten by a repair", async () => {
    world.service.resources.delete(document("0.txt")._id);
    expect(words(await verify(false))).toEqual([["0.txt", "missing", false]]);
    expect(kept()).toBe(1);
    expect(words(await verify(true))).toEqual([["0.txt", "missing", true]]);
    expect(await verify(true)).toMatchObject({ findings: [], agrees: true });
    expect(kept()).toBe(0);
  });

  it("is reported once when somebody changed it, and stays so", async () => {
    edit("0.txt", { content: "another text" });
    expect(words(await verify(true))).toEqual([["0.txt", "altered", true]]);
    expect(await verify(true)).toMatchObject({ findings: [], agrees: true });
    expect(document("0.txt").content).toBe("another text");
  });
});
