import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { askDaemon } from "../../../src/sync/daemon/control/client.ts";
import { operationsOf } from "../../../src/sync/daemon/control/operations.ts";
import { type Control, openControl } from "../../../src/sync/daemon/control/server.ts";
import type { DaemonOptions, World as SourceWorld } from "../../../src/sync/daemon.ts";
import {
  type LedgerOperation,
  ledgerOperations,
  type LedgerOperations,
  openCommands,
} from "../../../src/sync/operate/commands.ts";
import { readLedger } from "../../../src/sync/operate/offline.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import type { Approval, LiveStatus } from "../../../src/wire/daemon-status.ts";
import type { AnswerOf, RequestOf } from "../../../src/wire/daemon.ts";
import { openWorld, SINGLE_DELETES, until, type World } from "../daemon/harness.ts";
import { FIXED_PROGRAM } from "../daemon/control/program.ts";

const never = new AbortController().signal;

/** Ways to run an operation: over the socket of a running daemon, and on the ledger alone. */
type Way = "live" | "offline";

let world: World;
let sockets: string;
let control: Control | undefined;
let stopping: AbortController | undefined;
let running: Promise<void> | undefined;
beforeEach(async () => {
  world = await openWorld();
  sockets = mkdtempSync(join(tmpdir(), "kbsync-o-"));
});
afterEach(async () => {
  await stop();
  await world.end();
  rmSync(sockets, { recursive: true, force: true });
});

const SETTINGS = { settings: { trashDays: 7 }, timing: SINGLE_DELETES };

async function start(more: Partial<DaemonOptions> = {}): Promise<void> {
  stopping = new AbortController();
  const daemon = world.daemon({ ...SETTINGS, ...more });
  running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();
  control = await openControl({
    stateDir: sockets,
    version: "1.2.3",
    env: {},
    operations: operationsOf(daemon, { version: "1.2.3", startedMs: 5 }, FIXED_PROGRAM),
    onSocketOutside: () => undefined,
  });
}

async function stop(): Promise<void> {
  await control?.close();
  stopping?.abort();
  await running;
  [control, running] = [undefined, undefined];
}

async function ask<N extends LedgerOperation>(
  way: Way,
  name: N,
  request: RequestOf<N>,
): Promise<AnswerOf<N> | undefined> {
  if (way === "live") return askDaemon(sockets, name, request, { signal: never });
  return readLedger(world.stateDir, async (ledger) => {
    const options = { stateDir: world.stateDir, sources: () => [world.source()] };
    const operation: LedgerOperations[N] = ledgerOperations(openCommands(ledger, options))[name];
    return operation(request, { signal: never });
  });
}

/** The answers of a daemon to these requests, which must be those of its ledger after it has stopped. */
async function answersOf<N extends LedgerOperation>(
  name: N,
  ...requests: RequestOf<N>[]
): Promise<(AnswerOf<N> | undefined)[]> {
  const answers = async (way: Way): Promise<(AnswerOf<N> | undefined)[]> =>
    Promise.all(requests.map((request) => ask(way, name, request)));
  const live = await answers("live");
  await stop();
  expect(await answers("offline")).toEqual(live);
  return live;
}

const at = (path: string): string => join(world.root, path);

/** A folder with a refused file, an empty one, thirty held deletes and the saved text of a deleted file. */
async function prepare(): Promise<void> {
  for (let index = 10; index < 40; index += 1) world.write(`d/${index}.txt`, `text ${index}`);
  for (const name of ["agreed.txt", "gone.txt"]) world.write(name, `text of ${name}`);
  await world.sync(SETTINGS);
  rmSync(at("gone.txt"));
  await world.sync(SETTINGS);
  world.service.fault = ({ operation }) =>
    operation === "create"
      ? { kind: "answer", status: 422, body: '{"success":false,"message":"too odd"}' }
      : undefined;
  world.write("bad.txt", "bad");
  world.write("empty.txt", "");
  rmSync(at("d"), { recursive: true });
  await start();
}

describe("an operation of the daemon and the same operation on its ledger", () => {
  it("operations list files that are not in agreement, all of them, of a state, and below a path", async () => {
    await prepare();
    const refused = { source: world.root, path: "bad.txt", state: "failed", docId: null, message: "too odd" };
    const held = { source: world.root, path: "d/10.txt", state: "held", code: "held" };
    const [all, failed, waiting, one, below] = await answersOf(
      "files",
      { limit: 100 },
      { limit: 100, state: "failed" },
      { limit: 100, state: "waiting" },
      { limit: 1, state: "held" },
      { limit: 100, path: at("d") },
    );
    expect(all?.files).toHaveLength(31);
    expect(failed?.files).toMatchObject([refused]);
    expect(waiting?.files).toEqual([]);
    expect(one?.files).toMatchObject([held]);
    expect(one?.files[0]?.message).toMatch(/^30 deletes /);
    expect(below?.files.map(({ path }) => path)).toEqual(all?.files.slice(1).map(({ path }) => path));
  });

  it("operations list files that are left out, with the rule", async () => {
    await prepare();
    const query = { limit: 10, state: "skipped" } as const;
    const [all, below] = await answersOf("files", query, { ...query, path: at("d") });
    const empty = { path: "empty.txt", state: "skipped", docId: null, message: "the file is empty" };
    expect(all?.files).toMatchObject([{ source: world.root, ...empty }]);
    expect(below?.files).toEqual([]);
  });

  it("the status has what an approval would cover, with the same token as the ledger", async () => {
    await prepare();
    const approvalOf = (status: Pick<LiveStatus, "sources"> | undefined): Approval | null | undefined =>
      status?.sources[0]?.approval;
    const live = approvalOf(await askDaemon(sockets, "status", {}, { signal: never }));
    expect(live).toMatchObject({ source: world.root, held: 30 });
    expect(live?.token).toMatch(/^\w{8}$/);
    await stop();
    expect(approvalOf(readStatus(world.stateDir, 0))).toEqual(live);
  });

  it("operations pause a source until it is resumed, and try its files again", async () => {
    await prepare();
    const isPaused = (): boolean | undefined => readStatus(world.stateDir, 0)?.sources[0]?.paused;
    expect(await ask("live", "pause", { paused: true })).toEqual({ sources: [world.root] });
    expect(isPaused()).toBe(true);
    expect(await ask("live", "pause", { folder: world.root, paused: false })).toEqual({
      sources: [world.root],
    });
    expect(isPaused()).toBe(false);
    const retried = { source: world.root, failed: 1, parked: 0, skipped: 0, deletes: 0 };
    expect(await ask("live", "retry", { path: at("bad.txt") })).toEqual({ sources: [retried] });
  });

  it("operations explain a file in agreement, a refused, a held and a missing one", async () => {
    await prepare();
    const paths = ["agreed.txt", "bad.txt", "d/10.txt", "never.txt", ""];
    const requests = paths.map((path) => ({ path: at(path) }));
    const live = await Promise.all(requests.map(async (request) => ask("live", "why", request)));
    expect(live.map((found) => found?.next.action)).toEqual([
      "nothing",
      "nothing",
      "hold",
      "nothing",
      "hold",
    ]);
    expect(live.map((found) => found?.daemon)).toMatchObject(
      paths.map(() => ({ service: { kind: "open" } })),
    );
    expect(live[1]).toMatchObject({ ledger: { state: "failed", error: { message: "too odd" } } });
    await stop();
    const offline = await Promise.all(requests.map(async (request) => ask("offline", "why", request)));
    expect(offline).toEqual(live.map((found) => Object.assign({}, found, { daemon: null })));
  });

  it("operations list saved texts, and restore them", async () => {
    await prepare();
    const query = { limit: 10, state: "deleted" } as const;
    const [all, one, none] = await answersOf(
      "files",
      query,
      { ...query, path: at("gone.txt") },
      { ...query, path: at("agreed.txt") },
    );
    expect(all?.deleted).toMatchObject([{ path: at("gone.txt"), kind: "content", isExact: true }]);
    expect([one, none?.deleted, all?.files]).toEqual([all, [], []]);
    const restored = { files: [{ ...all?.deleted[0], outcome: "restored" }] };
    expect(await ask("offline", "undelete", { path: at("gone.txt") })).toEqual(restored);
    rmSync(at("gone.txt"));
    await start();
    expect(await ask("live", "undelete", { path: at("gone.txt") })).toEqual(restored);
    expect(readFileSync(at("gone.txt"), "utf8")).toBe("text of gone.txt");
    expect(await ask("live", "undelete", { path: at("gone.txt") })).toMatchObject({
      files: [{ outcome: "exists" }],
    });
  });

  it.each<[LedgerOperation, RequestOf<LedgerOperation>, string]>([
    ["files", { limit: 1, path: "/elsewhere" }, "outside_sources"],
    ["files", { limit: 1, state: "deleted", path: "/elsewhere" }, "outside_sources"],
    ["why", { path: "/elsewhere" }, "outside_sources"],
    ["undelete", { path: "/elsewhere" }, "outside_sources"],
    ["approve", { folder: "/elsewhere", token: "t" }, "source_unknown"],
  ])("operations refuse a path that is in no source: %s", async (name, request, code) => {
    world.write("a.txt", "a");
    await start();
    await expect(ask("live", name, request)).rejects.toMatchObject({ code });
    await stop();
    await expect(ask("offline", name, request)).rejects.toMatchObject({ code });
  });
});

it("checks a restored file at once, without an event", async () => {
  world.write("a.txt", "text");
  await world.sync(SETTINGS);
  rmSync(at("a.txt"));
  for (const name of ["b.txt", "c.txt"]) world.write(name, name);
  await world.sync(SETTINGS);
  const watch: SourceWorld["watch"] = async ({ onReady }) => {
    setImmediate(onReady);
    const close = async (): Promise<void> => Promise.resolve();
    return Promise.resolve({ degraded: () => undefined, renew: () => undefined, close });
  };
  await start({ world: { ...REAL_WORLD, watch } });
  await ask("live", "undelete", { path: at("a.txt") });
  await until(() => world.service.live().length === 3);
  expect(
    world.service
      .live()
      .map(({ title }) => title)
      .toSorted(),
  ).toEqual(["a.txt", "b.txt", "c.txt"]);
});
