import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import type { Daemon, DaemonOptions } from "../../../src/sync/daemon.ts";
import { readStatus } from "../../../src/sync/operator/status.ts";
import type { FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

const EMPTY_LIST = {
  kind: "answer",
  status: 200,
  body: '{"success":true,"message":"","data":{"resources":[],"created":0}}',
} as const;
/** A service whose list shows at once what it acknowledged. */
const prompt = (more: Partial<DaemonOptions> & { settings?: Record<string, unknown> } = {}) => ({
  service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key, listLagMs: 0 },
  ...more,
});
async function audit(options: Parameters<Daemon["audit"]>[0] = {}): Promise<AuditReport> {
  const daemon = world.daemon(prompt());
  try {
    return await daemon.audit(options);
  } finally {
    await daemon.close();
  }
}
async function syncStatus(
  options: Partial<DaemonOptions> = prompt(),
): Promise<ReturnType<Daemon["status"]>["sources"][number] | undefined> {
  const daemon = world.daemon(options);
  const { status } = await daemon.syncOnce();
  await daemon.close();
  return status.sources[0];
}
const titled = (title: string): FakeResource => {
  const found = world.service.live().find((each) => each.title === title);
  if (found === undefined) throw new Error(`no resource ${title}`);
  return found;
};
const writes = (): number =>
  world.service.requests.filter(({ operation }) => !["list", "collections"].includes(operation)).length;
const findings = ({ findings: all }: AuditReport): unknown[] =>
  all
    .map(({ kind, path, repaired }) => [kind, path, repaired] as const)
    .toSorted((a, b) => (a.join() < b.join() ? -1 : 1));
/** Writes enough files for a loss to be detected. */
const writeFiles = (count: number): void => {
  for (let n = 1; n <= count; n += 1) world.write(`${n}.txt`, `text ${n}`);
};
const forget = (...titles: string[]): void => {
  for (const title of titles) titled(title).isDeleted = true;
};
const forgetAll = (): FakeResource[] => {
  const all = world.service.live();
  for (const resource of all) resource.isDeleted = true;
  return all;
};

describe("an audit", () => {
  it("an audit finds nothing if all agree, for one list", async () => {
    writeFiles(6);
    world.write("a.pdf", PDF);
    world.write("b.url", "[InternetShortcut]\nURL=https://example.com/");
    await world.sync();
    const before = world.service.requests.length;
    expect(await audit({ repair: true })).toMatchObject({
      agrees: true,
      findings: [],
      foreign: 0,
      sources: [{ resources: 8, missing: 0, altered: 0, lost: null, listed: true }],
    });
    expect(world.service.requests.slice(before).map(({ operation }) => operation)).toEqual(["list"]);
  });

  it("an audit reports what others changed, and changes nothing without a request", async () => {
    writeFiles(8);
    world.write("a.pdf", PDF);
    await world.sync();
    forget("1.txt");
    titled("2.txt").content = "altered";
    titled("3.txt").description = "altered";
    titled("a.pdf").url = "https://elsewhere.example/a.pdf";
    const before = writes();
    const report = await audit();
    expect(report.agrees).toBe(false);
    expect(findings(report)).toEqual([
      ["altered", "2.txt", false],
      ["altered", "3.txt", false],
      ["altered", "a.pdf", false],
      ["missing", "1.txt", false],
    ]);
    expect(writes()).toBe(before);
  });

  it("an audit repairs what others changed: no resource twice, no id lost without need", async () => {
    writeFiles(8);
    world.write("a.pdf", PDF);
    await world.sync();
    const ids = new Map(world.service.live().map(({ title, _id }) => [title, _id]));
    forget("1.txt");
    titled("2.txt").content = "altered";
    titled("3.txt").description = "altered";
    titled("a.pdf").url = "https://elsewhere.example/a.pdf";
    expect(findings(await audit({ repair: true }))).toHaveLength(4);
    expect(world.service.live().map(({ title, content }) => [title, content])).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => [`${n}.txt`, `text ${n}`]),
      ["a.pdf", undefined],
    ]);
    expect(titled("3.txt").description).toBe("3.txt");
    expect(world.service.uploads.has(titled("a.pdf").url ?? "")).toBe(true);
    const unchanged = world.service.live().filter(({ title, _id }) => ids.get(title) === _id);
    expect(unchanged.map(({ title }) => title)).not.toContain("1.txt");
    expect(unchanged).toHaveLength(8);
    expect(world.activity.filter(({ action }) => action === "audit")).toHaveLength(4);
    expect(await audit()).toMatchObject({ agrees: true, findings: [] });
  });

  it("an audit accepts a text that the service stores in its own form", async () => {
    writeFiles(3);
    await world.sync();
    const keepsOwnWay = (): void => {
      titled("1.txt").content = "TEXT 1";
    };
    keepsOwnWay();
    expect(findings(await audit({ repair: true }))).toEqual([["altered", "1.txt", true]]);
    keepsOwnWay();
    expect(await audit()).toMatchObject({ agrees: true });
  });

  it("an audit is not misled by a stale list: resources it omits are updated, never created twice", async () => {
    writeFiles(4);
    await world.sync();
    const hidden = titled("1.txt");
    hidden.isDeleted = true;
    world.service.fault = ({ operation }) => {
      if (operation === "update") hidden.isDeleted = false;
      return undefined;
    };
    expect(findings(await audit({ repair: true }))).toEqual([["missing", "1.txt", true]]);
    expect(world.service.resources.size).toBe(4);
    expect(world.service.live()).toHaveLength(4);
  });

  it("an audit does not judge what was sent a short while ago, unless the service lists at once", async () => {
    writeFiles(2);
    await world.sync();
    forget("1.txt");
    const daemon = world.daemon();
    expect(await daemon.audit()).toMatchObject({ agrees: true, sources: [{ resources: 0, unjudged: 2 }] });
    await daemon.close();
    expect(await audit()).toMatchObject({
      agrees: false,
      sources: [{ resources: 2, missing: 1, unjudged: 0 }],
    });
  });

  it("an audit reports that the collection's id is unknown", async () => {
    await world.end();
    world = await openWorld();
    expect(await audit()).toMatchObject({ agrees: true, sources: [{ listed: false, resources: 0 }] });
  });
});

describe("resources that no file has", () => {
  const put = (resource: Partial<FakeResource>): string => {
    const _id = String(world.service.resources.size).padStart(24, "e");
    const createdAt = new Date(Date.now() + 1000).toISOString();
    world.service.resources.set(_id, { ...titled("1.txt"), createdAt, ...resource, _id });
    return _id;
  };

  it("an unowned resource is foreign while nothing shows that it is ours, and is never touched", async () => {
    writeFiles(2);
    await world.sync();
    put({ title: "notes", content: "somebody's" });
    put({ content: "of one title with ours" });
    put({ createdAt: "2020-01-01T00:00:00.000Z" });
    const report = await audit({ repair: true, byPerson: true });
    expect(report).toMatchObject({ agrees: true, foreign: 3 });
    expect(findings(report)).toEqual([
      ["foreign", "", false],
      ["foreign", "", false],
      ["foreign", "", false],
    ]);
    expect(world.service.live()).toHaveLength(5);
  });

  it("an equal resource from before the ledger is foreign though the clock was set forward since", async () => {
    writeFiles(1);
    await world.sync();
    put({ createdAt: new Date(Date.now() - 1_800_000).toISOString() });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    const report = await audit({ repair: true, byPerson: true });
    vi.useRealTimers();
    expect(findings(report)).toEqual([["foreign", "", false]]);
    expect(world.service.live()).toHaveLength(2);
  });

  it("an unowned resource is deleted if it has the address of our upload", async () => {
    world.write("1.txt", "text");
    world.write("a.pdf", PDF);
    await world.sync();
    const { url } = titled("a.pdf");
    const extra = put({ title: "a.pdf", ...(url !== undefined && { url }) });
    expect(findings(await audit({ repair: true }))).toEqual([["twice", "a.pdf", true]]);
    expect(world.service.resources.get(extra)?.isDeleted).toBe(true);
    expect(world.service.live()).toHaveLength(2);
  });

  it("an unowned resource that merely equals one of ours is deleted only when a person asks", async () => {
    writeFiles(2);
    await world.sync();
    const extra = put({});
    expect(findings(await audit({ repair: true }))).toEqual([["same", "1.txt", false]]);
    expect(world.service.live()).toHaveLength(3);
    expect(findings(await audit({ repair: true, byPerson: true }))).toEqual([["same", "1.txt", true]]);
    expect(world.service.resources.get(extra)?.isDeleted).toBe(true);
    expect(world.service.live()).toHaveLength(2);
  });

  it("an unowned resource that we deleted and that exists again is deleted only when a person asks", async () => {
    writeFiles(2);
    await world.sync();
    const old = titled("2.txt");
    rmSync(join(world.root, "2.txt"));
    await world.sync();
    old.isDeleted = false;
    expect(findings(await audit({ repair: true }))).toEqual([["returned", "", false]]);
    expect(findings(await audit({ repair: true, byPerson: true }))).toEqual([["returned", "", true]]);
    expect(world.service.live().map(({ title }) => title)).toEqual(["1.txt"]);
  });
});

describe("a service with a loss", () => {
  it("a service with a loss is not filled again without approval when an audit finds it", async () => {
    writeFiles(10);
    await world.sync();
    forgetAll();
    const report = await audit({ repair: true });
    expect(report.sources[0]).toMatchObject({ resources: 10, missing: 10 });
    expect(report.sources[0]?.lost).toContain("has lost 10 of 10 resources");
    expect(world.service.live()).toEqual([]);
    world.write("new.txt", "new");
    expect(await syncStatus()).toMatchObject({
      halted: true,
      holdReason: expect.stringContaining("reset") as string,
    });
    const daemon = world.daemon();
    const { planned } = await daemon.syncOnce({ dryRun: true });
    expect(planned).toMatchObject([{ action: "halt", reason: expect.stringContaining("reset") as string }]);
    await daemon.close();
    expect(world.service.live()).toEqual([]);
  });

  it("a loss is detected though the clock was set back since the files were sent", async () => {
    writeFiles(10);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await world.sync();
    vi.useRealTimers();
    forgetAll();
    const daemon = world.daemon();
    expect((await daemon.audit()).sources[0]).toMatchObject({
      missing: 10,
      lost: expect.stringContaining("has lost 10 of 10") as string,
    });
    await daemon.close();
  });

  it("a service with a loss is not filled again without approval when files change: the first few, then nothing", async () => {
    writeFiles(40);
    await world.sync();
    forgetAll();
    for (let n = 1; n <= 20; n += 1) world.write(`${n}.txt`, `changed ${n}`);
    expect(await syncStatus()).toMatchObject({ halted: true });
    expect(world.service.live().length).toBeLessThanOrEqual(3);
    const created = world.service.count("create");
    expect(await syncStatus()).toMatchObject({ halted: true });
    expect(world.service.count("create")).toBe(created);
  });

  it("a loss is detected by what was created again before, too", async () => {
    writeFiles(8);
    await world.sync();
    forgetAll();
    for (let n = 1; n <= 3; n += 1) world.write(`${n}.txt`, `changed ${n}`);
    for (let n = 1; n <= 4; n += 1) world.write(`new ${n}.txt`, `new ${n}`);
    await world.sync();
    const { sources } = await audit({ repair: true });
    expect(sources[0]).toMatchObject({ resources: 12, missing: 5 });
    expect(sources[0]?.lost).toContain("has lost 8 of 12 resources");
    expect(world.service.live()).toHaveLength(7);
  });

  it("a service with a loss is not filled again without approval when every file must be sent again", async () => {
    writeFiles(150);
    await world.sync();
    forgetAll();
    const sources = [world.source({ rules: [{ match: "**", description: "another" }] })];
    await world.sync(prompt({ sources }));
    expect(world.service.live().length).toBeLessThanOrEqual(3);
    expect(await syncStatus()).toMatchObject({ halted: true });
  });

  it("a service with a loss is filled once when a person agrees", async () => {
    writeFiles(10);
    await world.sync();
    forgetAll();
    await audit({ repair: true });
    expect(await world.offline.approve()).toMatchObject([{ source: world.root }]);
    expect(await syncStatus()).toMatchObject({ halted: false, searchable: 10, waiting: 0 });
    expect(new Set(world.service.live().map(({ content }) => content))).toEqual(
      new Set(Array.from({ length: 10 }, (_, n) => `text ${n + 1}`)),
    );
    expect(world.service.live()).toHaveLength(10);
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.length).toBe(before);
  });

  it("a source with a loss can leave the configuration, and a person approves the removal of what is left", async () => {
    writeFiles(10);
    await world.sync();
    forgetAll();
    await audit({ repair: true });
    const other = join(world.root, "..", "other");
    mkdirSync(other);
    const sources = [{ ...world.source(), path: other, absolutePath: other }];
    await world.sync(prompt({ sources }));
    expect(await world.offline.approve(world.root)).toMatchObject([
      { held: 10, reason: "removed from the configuration" },
    ]);
    await world.sync(prompt({ sources }));
    expect(readStatus(world.stateDir, 0)?.removed).toEqual([]);
  });

  it("a running daemon continues after a loss when a person agrees: what is back by then is not created again", async () => {
    writeFiles(10);
    await world.sync();
    const lost = forgetAll();
    await audit({ repair: true });
    const daemon = world.daemon(prompt());
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle && daemon.status().sources[0]?.halted === true);
    world.write("new.txt", "new");
    for (const resource of lost) resource.isDeleted = false;
    await daemon.approve();
    await until(
      () => world.service.live().length === 11,
      () => "the new file",
    );
    expect(world.service.resources.size).toBe(11);
    stop.abort();
    await ended;
  });

  it("a loss is detected by another collection id", async () => {
    writeFiles(10);
    await world.sync();
    forgetAll();
    world.service.renameCollections();
    world.write("new.txt", "new");
    expect(await syncStatus()).toMatchObject({ halted: true });
    expect(world.service.live().map(({ title }) => title)).toEqual(["new.txt"]);
  });

  it("a loss holds a source when the service holds older texts", async () => {
    writeFiles(10);
    await world.sync();
    for (const resource of world.service.live()) {
      resource.content = "an older text";
      resource.updatedAt = new Date(Date.parse(resource.updatedAt) - 3_600_000).toISOString();
    }
    const { sources } = await audit({ repair: true });
    expect(sources[0]?.lost).toContain("holds another version of 10 of 10 resources");
    const before = world.service.count("update");
    expect(await syncStatus()).toMatchObject({ halted: true });
    expect(world.service.count("update")).toBe(before);
    await world.offline.approve();
    expect(await syncStatus()).toMatchObject({ halted: false, searchable: 10 });
    expect(world.service.live().map(({ content }) => content)).not.toContain("an older text");
  });

  it("a loss is believed only if single resources are gone, too: a list that shows none is no loss", async () => {
    writeFiles(10);
    await world.sync();
    world.service.fault = ({ operation }) => (operation === "list" ? EMPTY_LIST : undefined);
    const { sources } = await audit({ repair: true });
    expect(sources[0]).toMatchObject({ missing: 10, lost: null });
    expect(world.service.resources.size).toBe(10);
  });

  it("a loss holds a source when most are gone, although the list omits some that exist", async () => {
    writeFiles(10);
    await world.sync();
    const all = world.service.live();
    for (const resource of all.slice(2)) resource.isDeleted = true;
    world.service.fault = ({ operation }) => (operation === "list" ? EMPTY_LIST : undefined);
    const { sources } = await audit({ repair: true });
    expect(sources[0]?.lost).toContain("has lost");
    expect(world.service.resources.size).toBe(10);
  });

  it.each([
    { omitted: 8, firstChanged: 13, which: "others" },
    { omitted: 8, firstChanged: 1, which: "some" },
    { omitted: 20, firstChanged: 1, which: "all" },
  ])(
    "a loss does not fill a service again because a list omitted $which of the resources while they existed",
    async ({ omitted, firstChanged }) => {
      writeFiles(20);
      const daemon = world.daemon(prompt());
      const stop = new AbortController();
      const ended = daemon.run({ signal: stop.signal });
      await until(() => world.service.live().length === 20 && daemon.status().idle);
      const hidden = world.service.live().slice(0, omitted);
      for (const resource of hidden) resource.ownerId = "not in the list";
      await daemon.audit({ repair: true });
      for (const resource of hidden) resource.ownerId = "docs-owner";
      await until(() => daemon.status().idle);
      forgetAll();
      const isHalted = (): boolean => daemon.status().sources[0]?.halted === true;
      for (let n = 1; n <= 8; n += 1) {
        world.write(`${firstChanged + n - 1}.txt`, `another text ${n}`);
        await until(
          () => isHalted() || world.service.live().some(({ content }) => content === `another text ${n}`),
        );
      }
      expect(isHalted()).toBe(true);
      expect(world.service.live()).toHaveLength(3);
      stop.abort();
      await ended;
    },
  );

  it("a loss holds a source until all but a few resources are back", async () => {
    writeFiles(10);
    await world.sync();
    const lost = forgetAll();
    await audit({ repair: true });
    for (const resource of lost.slice(0, 5)) resource.isDeleted = false;
    await audit({ repair: true });
    expect(await syncStatus()).toMatchObject({ halted: true });
    for (const resource of lost.slice(5, 7)) resource.isDeleted = false;
    expect(await syncStatus()).toMatchObject({ halted: false });
    await audit({ repair: true });
    expect(world.service.live()).toHaveLength(10);
    expect(world.service.resources.size).toBe(13);
  });

  it("a loss is detected while the source is paused, and nothing that changes the service is sent for that", async () => {
    writeFiles(10);
    const daemon = world.daemon(prompt());
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.live().length === 10 && daemon.status().idle);
    await daemon.pause();
    forgetAll();
    const before = writes();
    const { sources } = await daemon.audit({ repair: true });
    expect([sources[0]?.lost, writes()]).toEqual([expect.stringContaining("has lost"), before]);
    stop.abort();
    await ended;
  });

  it("a loss is detected although the list may still lag behind what was sent", async () => {
    writeFiles(10);
    await world.sync();
    forgetAll();
    for (let n = 1; n <= 10; n += 1) world.write(`${n}.txt`, `another text ${n}`);
    expect(await syncStatus({})).toMatchObject({ halted: true });
    expect(world.service.live().length).toBeLessThanOrEqual(3);
  });

  it("a list that does not show yet what was sent is not mistaken for a loss", async () => {
    writeFiles(10);
    await world.sync();
    forget("1.txt", "2.txt", "3.txt", "4.txt");
    world.service.fault = ({ operation }) => (operation === "list" ? EMPTY_LIST : undefined);
    for (let n = 1; n <= 4; n += 1) world.write(`${n}.txt`, `another text ${n}`);
    expect(await syncStatus({})).toMatchObject({ halted: false, searchable: 10 });
    expect(world.service.live()).toHaveLength(10);
  });

  it("a service is filled without approval if that is next to nothing", async () => {
    writeFiles(4);
    await world.sync();
    forgetAll();
    await audit({ repair: true });
    expect(world.service.live()).toHaveLength(4);
  });
});

describe("a running daemon", () => {
  it("a running daemon audits when a person asks, beside its work, and returns after all repairs", async () => {
    writeFiles(6);
    await world.sync();
    const warnings: Error[] = [];
    const daemon = world.daemon(prompt({ onWarning: (error) => warnings.push(error) }));
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await daemon.whenIdle();
    forget("1.txt");
    titled("2.txt").content = "altered";
    const report = await daemon.audit({ repair: true, byPerson: true });
    expect(report).toMatchObject({ agrees: false, left: 0 });
    expect(world.service.live().map(({ content }) => content)).toEqual(
      [1, 2, 3, 4, 5, 6].map((n) => `text ${n}`),
    );
    await expect(daemon.audit({ folder: "/nowhere" })).rejects.toMatchObject({ code: "source_unknown" });
    stop.abort();
    await ended;
  });

  it("a running daemon audits by itself when it is time", async () => {
    writeFiles(6);
    await world.sync();
    forget("1.txt");
    const warnings: Error[] = [];
    // A period of a tenth of a second.
    const daemon = world.daemon(
      prompt({ settings: { auditHours: 0.1 / 3600 }, onWarning: (error) => warnings.push(error) }),
    );
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(
      () => world.service.live().length === 6,
      () => "the missing one",
    );
    await until(
      () => warnings.length > 0,
      () => "a warning",
    );
    expect(warnings[0]).toMatchObject({
      code: "drift_found",
      message: expect.stringContaining("1 missing") as string,
      hint: expect.stringContaining("they are being repaired") as string,
    });
    stop.abort();
    await ended;
  });

  it("a running daemon's audit does not touch a file that changes while the list is read", async () => {
    writeFiles(6);
    await world.sync();
    const daemon = world.daemon(prompt());
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await daemon.whenIdle();
    let wrote = false;
    world.service.fault = ({ operation }) => {
      if (operation !== "list" || wrote) return undefined;
      wrote = true;
      world.write("1.txt", "newer");
      world.write("new.txt", "new");
      rmSync(join(world.root, "2.txt"));
      const gone = (): boolean => !world.service.live().some(({ title }) => title === "2.txt");
      return {
        kind: "wait",
        until: until(
          () => world.service.live().length === 6 && titled("1.txt").content === "newer" && gone(),
        ),
      };
    };
    const report = await daemon.audit({ repair: true, byPerson: true });
    expect(report).toMatchObject({ findings: [], agrees: true, foreign: 0 });
    stop.abort();
    await ended;
  });

  it("a running daemon's audit is not misled by a list that is older than what was just acknowledged", async () => {
    writeFiles(6);
    await world.sync();
    const resources = structuredClone(world.service.live());
    const body = JSON.stringify({ success: true, message: "", data: { resources, created: 0 } });
    world.write("1.txt", "newer");
    world.write("new.txt", "new");
    rmSync(join(world.root, "2.txt"));
    await world.sync();
    world.service.fault = ({ operation }) =>
      operation === "list" ? { kind: "answer", status: 200, body } : undefined;
    const daemon = world.daemon();
    expect(await daemon.audit({ repair: true, byPerson: true })).toMatchObject({
      findings: [],
      agrees: true,
      foreign: 0,
    });
    await daemon.close();
    expect(world.service.live().map(({ content }) => content)).toEqual([
      "newer",
      "text 3",
      "text 4",
      "text 5",
      "text 6",
      "new",
    ]);
  });
});
