import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import type { Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "./harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.end();
});

const answer = (status: number, message: string): Fault => ({
  kind: "answer",
  status,
  body: JSON.stringify({ success: false, message }),
});

describe("a file that the service fails on every time", () => {
  it("parks a file on which the service fails every time, even if it is the only one", async () => {
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    world.service.fault = ({ operation }) => (operation === "update" ? answer(500, "poison") : undefined);
    const daemon = world.daemon();
    await daemon.syncOnce();
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "a.txt", state: "waiting", message: "poison" },
    ]);
    expect(daemon.status().service.kind).toBe("open");
    await daemon.close();
  });

  it("uploads a file once, however often its create is repeated", async () => {
    const pdf = (pages: number): Buffer => Buffer.from(`%PDF-1.4 ${pages} pages`);
    world.write("a.pdf", pdf(1));
    await world.sync();
    world.write("a.pdf", pdf(22));
    let updates = 0;
    world.service.fault = ({ operation }) =>
      operation === "update" && ++updates < 3 ? { kind: "answer", status: 500, body: "oops" } : undefined;
    await world.sync();
    expect(updates).toBe(3);
    expect(world.service.count("upload")).toBe(2);
    const [resource] = world.service.live();
    expect(world.service.uploads.get(resource?.url ?? "")?.content.toString()).toBe("%PDF-1.4 22 pages");
  });

  it.each(["create", "update"])(
    "uploads a file again for a(n) %s that was delayed until the upload was collected",
    async (what) => {
      if (what === "update") {
        world.write("a.pdf", Buffer.from("%PDF-1.4 some pages"));
        await world.sync();
      }
      world.write("a.pdf", Buffer.from("%PDF-1.4 other pages"));
      const before = world.service.count("upload");
      let asked = 0;
      world.service.fault = ({ operation }) => {
        if (operation !== what) return undefined;
        asked += 1;
        if (asked === 1) return answer(503, "starting");
        return asked === 2 ? answer(400, "no such upload") : undefined;
      };
      await world.sync();
      expect(asked).toBe(3);
      expect(world.service.count("upload") - before).toBe(2);
      // Under the key of the first one, a service would return its old address.
      const uploads = world.service.requests.filter(({ operation }) => operation === "upload").slice(before);
      expect(new Set(uploads.map(({ headers }) => headers["idempotency-key"])).size).toBe(2);
      const [resource] = world.service.live();
      expect(world.service.uploads.get(resource?.url ?? "")?.content.toString()).toBe("%PDF-1.4 other pages");
    },
  );

  it("parks no file while the service answers nothing at all", async () => {
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    let requests = 0;
    world.service.fault = () => (requests++ < 4 ? answer(500, "all is lost") : undefined);
    await world.sync();
    expect(world.service.live()).toMatchObject([{ content: "two, longer" }]);
    expect(world.activity.filter(({ outcome }) => outcome === "parked")).toEqual([]);
  });
});

describe("a delete that the service will not do", () => {
  const daemonAfterDelete = async (fault: Fault): Promise<void> => {
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    await world.sync();
    rmSync(join(world.root, "a.txt"));
    world.service.fault = ({ operation }) => (operation === "delete" ? fault : undefined);
  };

  it.each([
    ["refuses", answer(400, "not that one")],
    ["fails on", answer(500, "not that one")],
  ])("counts and names as failed a delete when the service %s it", async (_, fault) => {
    await daemonAfterDelete(fault);
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources).toMatchObject([{ files: 1, searchable: 1, deletesRefused: 1 }]);
    const named = [{ source: world.root, path: "a.txt", state: "failed", message: "not that one" }];
    expect(daemon.files({ limit: 10 })).toMatchObject(named);
    await daemon.close();
    expect(readStatus(world.stateDir, 10)).toMatchObject({
      sources: [{ deletesRefused: 1 }],
      troubled: named,
    });
    world.service.fault = () => undefined;
    await world.sync();
    expect(readStatus(world.stateDir, 10)).toMatchObject({ sources: [{ deletesRefused: 0 }], troubled: [] });
    expect(world.service.live()).toHaveLength(1);
  });

  it("sends a refused delete again after a while, and not before", async () => {
    await daemonAfterDelete(answer(400, "not that one"));
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().sources[0]?.deletesRefused === 1 && daemon.status().idle);
    world.write("b.txt", "two again");
    await until(() => world.service.live().some(({ content }) => content === "two again"));
    await until(() => daemon.status().idle);
    expect(world.service.count("delete")).toBe(1);
    world.service.fault = () => undefined;
    const { now } = Date;
    vi.spyOn(Date, "now").mockImplementation(() => now() + 61_000);
    world.write("c.txt", "three");
    await until(() => daemon.status().sources[0]?.deletesRefused === 0);
    expect(world.service.live().map(({ title }) => title)).toEqual(["b.txt", "c.txt"]);
    stop.abort();
    await ended;
  });
});

describe("a disk that is full", () => {
  const full = (name: string): void => {
    if (name === "commit")
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  };

  it("ends one pass with a message on a full disk, and keeps the status", async () => {
    world.write("a.txt", "one");
    const daemon = world.daemon({ step: full });
    await expect(daemon.syncOnce()).rejects.toMatchObject({ code: "disk_full" });
    expect(daemon.status()).toMatchObject({ progress: { done: 0 } });
    expect(daemon.files({ limit: 10 })).toEqual([]);
    await daemon.close();
    expect(() => daemon.status()).not.toThrow();
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });

  it("ends a running daemon with a message on a full disk", async () => {
    let isFull = false;
    world.write("a.txt", "one");
    const daemon = world.daemon({ step: (name) => (isFull ? full(name) : undefined) });
    const ended = daemon.run({ signal: new AbortController().signal });
    await until(() => daemon.status().sources[0]?.searchable === 1 && daemon.status().idle);
    isFull = true;
    world.write("b.txt", "two");
    // A person reads the status all the while.
    const watching = setInterval(() => daemon.status(), 5);
    await expect(ended).rejects.toMatchObject({ code: "disk_full" });
    clearInterval(watching);
    expect(daemon.status().sources).toMatchObject([{ path: world.root, searchable: 1 }]);
  });
});

describe("a ledger that is damaged in the middle", () => {
  const FILES = 200;
  /** The page with the first row of the files' table; the beginning of the file stays intact. */
  const damage = (): void => {
    const file = ledgerFile(world.stateDir);
    const bytes = readFileSync(file);
    const at = bytes.indexOf("files/f0.txt");
    bytes.fill(0xa7, at - (at % PAGE_BYTES), at - (at % PAGE_BYTES) + PAGE_BYTES);
    writeFileSync(file, bytes);
  };
  const PAGE_BYTES = 4096;

  it.each(["one pass", "a running daemon"])(
    "ends %s with a message when the ledger is damaged, and sends nothing",
    async (how) => {
      for (let index = 0; index < FILES; index += 1) world.write(`files/f${index}.txt`, `text ${index}`);
      await world.sync();
      damage();
      world.write("files/f0.txt", "another text");
      const before = world.service.requests.length;
      const daemon = world.daemon();
      const ended =
        how === "one pass" ? daemon.syncOnce() : daemon.run({ signal: new AbortController().signal });
      await expect(ended).rejects.toMatchObject({
        code: "ledger_damaged",
        subject: ledgerFile(world.stateDir),
        hint: expect.stringContaining("`kbsync sync --recover`") as string,
      });
      await daemon.close();
      expect(world.service.requests.length).toBe(before);
    },
  );
});

describe("a daemon that has ended", () => {
  it("returns its last status after it has ended, and holds no timer", async () => {
    const timers: { handle: NodeJS.Timeout; ms: number }[] = [];
    const real = setTimeout;
    vi.spyOn(globalThis, "setTimeout").mockImplementation((run, ms = 0, ...rest) => {
      const handle = real(run, ms, ...rest);
      timers.push({ handle, ms });
      return handle;
    });
    world.write("a.txt", "one");
    await world.sync();
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle);
    // The file is parked for a minute while the daemon is already stopping.
    let failures = 0;
    world.service.fault = ({ operation }) => {
      if (operation === "update") failures += 1;
      if (operation !== "collections") return operation === "update" ? answer(500, "poison") : undefined;
      stop.abort();
      return { kind: "wait", until: new Promise((resolve) => real(resolve, 100)) };
    };
    world.write("a.txt", "two, longer");
    await ended;
    expect(failures).toBe(3);
    expect(world.activity.at(-1)).toMatchObject({ path: "a.txt", outcome: "parked" });
    expect(daemon.status().sources).toMatchObject([{ waiting: 1 }]);
    const armed = timers.filter(({ handle, ms }) => {
      const { _destroyed } = handle as unknown as { _destroyed: boolean };
      return ms > 300 && handle.hasRef() && !_destroyed;
    });
    expect(armed.map(({ ms }) => ms)).toEqual([]);
  });
});
