import { renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, it } from "vitest";
import { awaitFresh } from "../../src/cli/state/fresh.ts";
import { buildProgram } from "../../src/cli/command-line.ts";
import { standingWords } from "../../src/cli/output/standing-words.ts";
import { needsOf, sentenceOf, type Whole } from "../../src/console/overview/needs.ts";
import { describeStatus } from "../../src/mcp/status-tool.ts";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import type { KnowledgeService } from "../../src/mcp/service.ts";
import { measureDaemon } from "../../src/metrics/daemon.ts";
import { operationsOf } from "../../src/sync/daemon/control/operations.ts";
import { type Control, openControl } from "../../src/sync/daemon/control/server.ts";
import { askDaemon } from "../../src/sync/daemon/control/client.ts";
import type { Daemon, DaemonOptions } from "../../src/sync/daemon.ts";
import { codeOf, messageOf } from "../../src/lib/failure.ts";
import { lockFolder } from "../../src/lib/folder-lock.ts";
import type { DaemonFigures } from "../../src/sync/daemon/status.ts";
import type { LiveStatus, SourceStatus } from "../../src/wire/daemon-status.ts";
import type { Version } from "../../src/wire/daemon-files.ts";
import { besideWords, countWords, searchableWords, type VersionState } from "../../src/wire/file-state.ts";
import type { FakeRequest, Fault } from "../fakes/knowledge-service.ts";
import { openWorld, SINGLE_DELETES, until, type World } from "../sync/daemon/harness.ts";
import { canMount, mountDisk } from "../crash/mount.ts";
import { FIXED_PROGRAM } from "../sync/daemon/control/program.ts";
import { cliContext, outputTo } from "./context.ts";

let world: World;
let config: string;
let daemon: Daemon | undefined;
let control: Control | undefined;
let stopping: AbortController | undefined;
let running: Promise<void> | undefined;
/** Answers of a service that hangs wait for this. */
let release: () => void;
let released: Promise<void>;
/** What the service makes of a text. */
let normalise: (text: string) => string;

beforeEach(async () => {
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
  normalise = (text) => text;
  world = await openWorld({
    searches: true,
    reads: true,
    collections: true,
    normalise: (field, text) => (field === "content" ? normalise(text) : text),
  });
  config = join(dirname(world.root), "kbsync.config.json");
  configure({ path: world.root, ownerId: "docs-owner", collection: "fastest" });
});
afterEach(async () => {
  release();
  world.service.fault = () => undefined;
  await stop();
  await world.end();
});

function configure(...sources: object[]): void {
  const { url } = world.service;
  const service = { apiUrl: url, dbUrl: url, resourcesUrl: url };
  writeFileSync(config, JSON.stringify({ service, stateDir: world.stateDir, sources }));
}

async function start(more: Partial<DaemonOptions> = {}): Promise<Daemon> {
  stopping = new AbortController();
  daemon = world.daemon({ timing: SINGLE_DELETES, ...more });
  running = daemon.run({ signal: stopping.signal });
  control = await openControl({
    stateDir: world.stateDir,
    version: "1.2.3",
    env: {},
    operations: operationsOf(daemon, { version: "1.2.3", startedMs: 5 }, FIXED_PROGRAM),
    onSocketOutside: () => undefined,
  });
  return daemon;
}

async function stop(): Promise<void> {
  await control?.close();
  stopping?.abort();
  await running;
  [daemon, control, running] = [undefined, undefined, undefined];
}

/** The outcome of a command. */
interface Ended {
  readonly code: number;
  /** Standard output and standard error, and the message of what ended it. */
  readonly text: string;
}

async function kbsync(...args: string[]): Promise<Ended> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const context = cliContext({
    stdout: outputTo(add),
    stderr: { write: add },
    env: { KBSYNC_PAUTHKEY: world.service.key },
    cwd: world.root,
    // A comparison waits for a service that does not answer.
    signal: AbortSignal.timeout(3000),
  });
  const all = [...args, "--config", config];
  try {
    await (await buildProgram(context, all)).parseAsync(all, { from: "user" });
    return { code: context.exitCode, text };
  } catch (error) {
    return { code: -1, text: `${text}${messageOf(error)}` };
  }
}

const json = async <T>(...args: string[]): Promise<T> =>
  JSON.parse((await kbsync(...args, "--json")).text) as T;
const at = (path: string): string => join(world.root, path);
const fault = (which: (request: FakeRequest) => boolean, what: Fault): void => {
  world.service.fault = (request) => (which(request) ? what : undefined);
};
const isWrite = ({ operation }: FakeRequest): boolean => operation === "create" || operation === "update";
const answer = (status: number, data: object): Fault => ({
  kind: "answer",
  status,
  body: JSON.stringify({ success: status < 300, ...data }),
});

/** A.md is searchable, with a daemon that runs. */
async function synced(...more: string[]): Promise<Daemon> {
  for (const path of ["a.md", ...more]) world.write(path, `# ${path}\nzebra`);
  const opened = await start();
  await opened.whenIdle();
  return opened;
}

function figures(): DaemonFigures {
  if (daemon === undefined) throw new Error("no daemon");
  return daemon.figures();
}

/** The metrics of the daemon, as they are exported. */
async function measured(): Promise<string> {
  const registry = new Registry();
  measureDaemon(registry).set(figures());
  return registry.metrics();
}

function live(): LiveStatus {
  const facts = { pid: 1, version: "1", startedMs: 0, pending: null, notApplied: [] };
  return { ...figures().status, ...facts };
}

/** What the tool `status` answers. */
async function described(): ReturnType<typeof describeStatus> {
  const service = { owners: async () => undefined } as unknown as KnowledgeService;
  const status = (signal: AbortSignal) => askDaemon(world.stateDir, "status", {}, { signal });
  const reached = { service, ownsLedger: true, daemon: { status } };
  return describeStatus(reached, NO_FILES, {}, AbortSignal.timeout(10_000));
}

const READY = { state: "ready", message: "works" };

/** What the overview of the console shows. */
function viewed(): Whole {
  const health = { status: "ready", embedder: READY, reranker: READY, languageModel: READY } as never;
  return { documents: 1, health, queues: undefined, daemon: daemon && live() };
}

/** What those surfaces say that need a daemon, once there is none. */
async function sayNoDaemon(): Promise<void> {
  expect(await described()).toEqual({
    data: { daemon: "stopped", folders: [] },
    text: "The service answers. No daemon runs here: newer changes of files are not searchable.",
  });
  const view = viewed();
  expect(sentenceOf(view, needsOf(view))).toBe("Your document is searchable");
  const registry = new Registry();
  measureDaemon(registry);
  expect(await registry.metrics()).not.toMatch(/^kbsync_sync_files\{/m);
}

/** What every surface says of a situation. */
interface Expected {
  /** A file, and the state of its newest version. */
  readonly path: string;
  readonly state: VersionState;
  readonly reason: RegExp;
  /** Files by state, which all surfaces count alike. */
  readonly counts: Partial<
    Record<
      "searchable" | "reading" | "waiting" | "failed" | "skipped" | "held" | "deletesRefused" | "unreadable",
      number
    >
  >;
}

interface Situation {
  readonly name: string;
  /** Brings it about. */
  readonly make: () => Promise<void>;
  readonly expected: Expected;
}

/** A.md is searchable, and the service reads the pictures of scan.pdf. */
async function scanRead(): Promise<Daemon> {
  world.write("a.md", "zebra");
  world.write("scan.pdf", "%PDF-1.4\nscan");
  const data = {
    _id: "scan",
    title: "scan.pdf",
    metadata: { status: "queued", warning: "Pages 1–2 are still being read." },
  };
  world.service.fault = ({ operation, body, docId }) => {
    if (operation === "create" && body?.["url"] !== undefined) return answer(202, { data });
    return operation === "read" && docId === "scan" ? answer(200, { data }) : undefined;
  };
  const opened = await start();
  await until(() => opened.status().sources[0]?.reading === 1);
  await until(() => opened.status().sources[0]?.searchable === 1);
  return opened;
}

const SCAN_READ: Expected = {
  path: "scan.pdf",
  state: "reading",
  reason: /reading it/,
  counts: { searchable: 1, reading: 1 },
};

const SITUATIONS: readonly Situation[] = [
  {
    name: "a folder in agreement",
    make: async () => void (await synced()),
    expected: { path: "a.md", state: "searchable", reason: /found by words/, counts: { searchable: 1 } },
  },
  {
    name: "a backlog: 18 of 20 files wait for a slow service",
    make: async () => {
      for (let index = 10; index < 30; index += 1) world.write(`${index}.md`, `text ${index}`);
      let creates = 0;
      fault(({ operation }) => operation === "create" && ++creates > 2, { kind: "wait", until: released });
      const opened = await start();
      await until(() => opened.status().sources[0]?.searchable === 2);
    },
    expected: {
      path: "29.md",
      state: "waiting",
      reason: /turn|being sent/,
      counts: { searchable: 2, waiting: 18 },
    },
  },
  {
    name: "a scan that the service reads",
    make: async () => void (await scanRead()),
    expected: SCAN_READ,
  },
  {
    name: "a scan that the service reads while its folder is paused",
    make: async () => void (await (await scanRead()).pause(world.root)),
    expected: SCAN_READ,
  },
  {
    name: "a paused folder",
    make: async () => {
      const opened = await synced();
      await opened.pause(world.root);
      world.write("a.md", "quagga");
      await until(() => opened.status().sources[0]?.waiting === 1);
    },
    expected: { path: "a.md", state: "waiting", reason: /kbsync resume/, counts: { waiting: 1 } },
  },
  {
    name: "deletes that are held",
    make: async () => {
      const opened = await synced("b.md", "c.md");
      for (const path of ["a.md", "b.md", "c.md"]) rmSync(at(path));
      await until(() => opened.status().sources[0]?.held === 3);
    },
    expected: { path: "a.md", state: "held", reason: /./, counts: { held: 3 } },
  },
  {
    name: "a file that the service refuses",
    make: async () => {
      const opened = await synced();
      fault(isWrite, answer(422, { message: "too odd" }));
      world.write("a.md", "quagga");
      await until(() => opened.status().sources[0]?.failed === 1);
    },
    expected: { path: "a.md", state: "failed", reason: /too odd/, counts: { failed: 1 } },
  },
  {
    name: "an unmounted folder",
    make: async () => {
      const opened = await synced();
      renameSync(world.root, `${world.root}-away`);
      await until(() => opened.status().sources[0]?.halted === true);
    },
    expected: { path: "a.md", state: "waiting", reason: /halted.*missing/, counts: { waiting: 1 } },
  },
  {
    name: "a folder that was replaced by another one",
    make: async () => {
      const opened = await synced("b.md");
      renameSync(world.root, `${world.root}-away`);
      // What the other one holds is unknown to all but a proof, which reads it.
      world.write(".other", "okapi");
      await until(() => opened.status().sources[0]?.halted === true);
    },
    expected: { path: "a.md", state: "waiting", reason: /halted.*replaced/, counts: { waiting: 2 } },
  },
  {
    name: "a service that does not answer",
    make: async () => {
      const opened = await synced();
      fault(() => true, { kind: "lose-request" });
      world.write("a.md", "quagga");
      await until(
        () => opened.status().service.kind === "waiting" && opened.status().sources[0]?.waiting === 1,
      );
    },
    expected: { path: "a.md", state: "waiting", reason: /does not answer/, counts: { waiting: 1 } },
  },
  {
    name: "a service whose disk is full",
    make: async () => {
      const opened = await synced();
      fault(isWrite, answer(503, { message: "The disk is full.", error: { code: "disk_full" } }));
      world.write("a.md", "quagga");
      await until(
        () => opened.status().service.kind === "waiting" && opened.status().sources[0]?.waiting === 1,
      );
    },
    expected: { path: "a.md", state: "waiting", reason: /disk is full/, counts: { waiting: 1 } },
  },
  {
    name: "a service that keeps a text in a form of its own",
    make: async () => {
      normalise = (text) => text.toUpperCase();
      const opened = await synced();
      world.write("a.md", "quagga");
      await until(() => world.service.live()[0]?.content === "QUAGGA");
      await opened.whenIdle();
    },
    expected: { path: "a.md", state: "searchable", reason: /form of its own/, counts: { searchable: 1 } },
  },
  {
    name: "a service that answers an update and keeps the earlier text",
    make: async () => {
      const opened = await synced();
      world.service.fault = ({ operation, docId }) => {
        const data = world.service.resources.get(docId ?? "");
        return operation === "update" ? answer(200, { message: "updated", data }) : undefined;
      };
      world.write("a.md", "quagga");
      await until(() => opened.status().sources[0]?.waiting === 1 && opened.status().idle);
    },
    expected: {
      path: "a.md",
      state: "waiting",
      reason: /still shows the earlier text/,
      counts: { waiting: 1 },
    },
  },
  {
    name: "a service that refuses deletes alone",
    make: async () => {
      const opened = await synced("b.md", "c.md");
      fault(({ operation }) => operation === "delete", answer(403, { message: "this key may not delete" }));
      rmSync(at("a.md"));
      await until(() => opened.status().sources[0]?.deletesRefused === 1);
      world.write("b.md", "quagga");
      await until(() => world.service.live().some(({ content }) => content === "quagga"));
      await opened.whenIdle();
    },
    expected: {
      path: "a.md",
      state: "failed",
      reason: /may not delete/,
      counts: { searchable: 2, deletesRefused: 1 },
    },
  },
  {
    name: "a new file in a folder whose ignore file cannot be read",
    make: async () => {
      const opened = await synced("b.md");
      world.write("sub/.kbsyncignore", "a\0b");
      world.write("sub/a.md", "secret");
      await until(() => opened.status().sources[0]?.unreadable === 1 && opened.status().idle);
    },
    expected: {
      path: "sub/a.md",
      state: "waiting",
      reason: /ignore is not text/,
      counts: { searchable: 2, unreadable: 1 },
    },
  },
  {
    name: "a new configuration that leaves a file out",
    make: async () => {
      await synced("b.md");
      await stop();
      const exclude = ["a.md"];
      configure({ path: world.root, ownerId: "docs-owner", collection: "fastest", exclude });
      const opened = await start({ sources: [world.source({ exclude })] });
      await opened.whenIdle();
      await until(() => world.service.live().length === 1);
    },
    expected: { path: "a.md", state: "skipped", reason: /`a\.md` in `exclude`/, counts: { searchable: 1 } },
  },
];

/** A service that does not answer cannot be compared. */
const isAway = ({ name }: Situation): boolean => name === "a service that does not answer";
const LISTS = ["held", "failed", "waiting", "skipped"].map((each) => ["status", `--${each}`] as const);
const sum = ({ searchable, reading, waiting, failed }: SourceStatus): number =>
  searchable + reading + waiting + failed;
const COUNTED = ["searchable", "reading", "waiting", "failed", "held"] as const;

it.each(SITUATIONS)("every surface says the same of $name", async (situation) => {
  const { path, state, reason, counts } = situation.expected;
  await situation.make();
  const { searchable: _found = 0, skipped: _skipped = 0, ...bad } = counts;
  const isDone = Object.keys(bad).length === 0;

  // The counts of status add up, and are those of metrics, of MCP and of the line for a service manager.
  const [source] = (await json<{ sources: SourceStatus[] }>("status")).sources;
  if (source === undefined) throw new Error("no source");
  for (const each of COUNTED) expect([each, source[each]]).toEqual([each, counts[each] ?? 0]);
  for (const each of ["deletesRefused", "unreadable"] as const) expect(source[each]).toBe(counts[each] ?? 0);
  expect(source.files).toBe(sum(source));
  const metrics = await measured();
  for (const each of COUNTED)
    expect(metrics).toContain(`kbsync_sync_files{state="${each}"} ${counts[each] ?? 0}\n`);
  const mcp = await described();
  expect(mcp.data.folders[0]).toMatchObject(
    Object.fromEntries(COUNTED.map((each) => [each, counts[each] ?? 0])),
  );
  const words = searchableWords(source);
  expect(mcp.text).toContain(words);
  const { deletesRefused, unreadable, held } = source;
  // A reason for a hold says more.
  for (const each of source.holdReason === null ? besideWords([{ deletesRefused, unreadable, held }]) : [])
    expect(mcp.text).toContain(each);
  expect(standingWords(figures().status)).toContain(words);

  // The state of the file is that of its explanation, and only the list of its state names it.
  const { version } = await json<{ version: Version }>("why", at(path));
  expect(version).toMatchObject({ state, reason: expect.stringMatching(reason) as string });
  const lists = await Promise.all(LISTS.map(async (args) => (await kbsync(...args)).text));
  const own = state === "reading" ? "waiting" : state;
  for (const [index, [, option]] of LISTS.entries()) {
    const named = source.halted ? world.root : (counts.unreadable ?? 0) > 0 ? `${dirname(path)}: ` : path;
    const isNamed = lists[index]?.includes(named) === true;
    expect([option, isNamed]).toEqual([option, option === `--${own}`]);
  }

  // Nothing says that all is well while something is not.
  const status = await kbsync("status");
  expect(
    status.text
      .split("\n")
      .slice(0, 5)
      .map((line) => line.split(" ")[0]),
  ).toEqual(["daemon", "service", "files", "search", "beside"]);
  const [, found, whole = found, others = ""] =
    /^files +(\d+)(?: of (\d+))? files? searchable(.*)$/m.exec(status.text) ?? [];
  const numbers = [found, ...[...others.matchAll(/\d+/g)].map(([number]) => number)].map(Number);
  expect([Number(whole), numbers.reduce((total, number) => total + number, 0)]).toEqual([
    source.files,
    source.files,
  ]);
  const [, beside = ""] = /^beside +(.*)$/m.exec(status.text) ?? [];
  expect(/\d+ deletes? held/.test(beside)).toBe((counts.held ?? 0) > 0);
  expect(/\d+ deletes? refused/.test(beside)).toBe((counts.deletesRefused ?? 0) > 0);
  expect(/\d+ unreadable/.test(beside)).toBe((counts.unreadable ?? 0) > 0);
  expect(/^failed$/m.test(status.text)).toBe((counts.failed ?? counts.deletesRefused ?? 0) > 0);
  const all = (await kbsync("status", world.root)).text;
  const isListed = !isDone || state === "skipped";
  expect(all.includes("every file is searchable as it is on disk")).toBe(!isListed);
  const isFound = state === "searchable";
  for (const args of [["wait"], ["wait", "--embedded"]]) {
    const { code, text } = await kbsync(...args, at(path), "--timeout", "1");
    expect([args, code === 0, reason.test(text)]).toEqual([args, isFound, !isFound]);
  }
  const signal = AbortSignal.timeout(10_000);
  const late = await awaitFresh(world.stateDir, { path: at(path), seconds: 1, signal });
  expect([late === undefined, reason.test(late ?? "")]).toEqual([isFound, !isFound]);
  const verify = await kbsync("verify");
  expect(verify.code === 0).toBe(isDone);
  const shortfall = /what was sent is there; .*(waiting|being read|failed|held|refused|unreadable)/.test(
    verify.text,
  );
  // While the service asks for a wait, a daemon's list waits too.
  const mayWait = isAway(situation) || situation.name === "a service whose disk is full";
  expect((mayWait && verify.code === -1) || shortfall).toBe(!isDone);

  // A service that does not answer finds nothing.
  const search = await kbsync("search", "zebra");
  const unsent = countWords({ reading: source.reading, waiting: source.waiting }).join(", ");
  const named = / searchable yet: (.*)\.$/m.exec(search.text)?.[1] ?? "";
  expect([search.code, named]).toEqual(isAway(situation) ? [-1, ""] : [0, unsent]);
  const view = viewed();
  expect(/^(All|Your)/.test(sentenceOf(view, needsOf(view)))).toBe(isDone && source.files > 0);
});

it("a search that waits for what was saved does not wait for a scan of the first sync", async () => {
  await scanRead();
  world.write("b.md", "okapi");
  const wait = await kbsync("wait", "--timeout", "8");
  expect(wait).toEqual({ code: 0, text: "" });
  const { text } = await kbsync("search", "okapi", "--fresh", "--files");
  expect(text).toContain("b.md");
  expect(text).not.toContain("may be up to date");
  expect(await json("wait", "--timeout", "8")).toMatchObject({ end: "searchable", reading: 1 });
  world.write("bad.docx", "no document");
  expect((await kbsync("wait", "--timeout", "8")).text).toMatch(
    /^bad\.docx: .*\npictures of 1 file still being read: .*scan\.pdf\n$/,
  );
});

it("names a refused file that was changed during a pause as one that waits, and as no other", async () => {
  await SITUATIONS.find(({ expected }) => expected.state === "failed")?.make();
  await daemon?.pause(world.root);
  world.write("a.md", "okapi");
  await until(() => figures().status.sources[0]?.waiting === 1);
  const { text } = await kbsync("status");
  expect(text).toMatch(/^files +0 of 1 file searchable, 1 waiting$/m);
  expect(text).not.toContain("a.md");
  expect((await kbsync("search", "zebra")).text).toContain("Not everything is searchable yet: 1 waiting.");
  const wait = await kbsync("wait");
  expect(wait).toEqual({ code: 1, text: expect.stringMatching(/^a\.md: .*kbsync resume`\n$/) as string });
});

it("says that an older version is searchable only of a file of which one is", async () => {
  const opened = await synced();
  const listed = Promise.withResolvers<void>();
  world.service.fault = ({ operation }) => {
    if (operation === "create") return { kind: "lose-answer" };
    return operation === "list" ? { kind: "wait", until: listed.promise } : undefined;
  };
  world.write("scan.pdf", "%PDF-1.4\nscan");
  const scan = (): { status?: "queued" | "error" } | undefined =>
    world.service.live().find(({ title }) => title === "scan.pdf");
  await until(() => scan() !== undefined);
  Object.assign(scan() ?? {}, { status: "queued" });
  listed.resolve();
  await until(() => figures().status.sources[0]?.reading === 1);
  const isRead = async (): Promise<void> => {
    const { version } = await json<{ version: Version }>("why", at("scan.pdf"));
    expect(version).toMatchObject({ hasOlder: false });
    expect((await kbsync("why", at("scan.pdf"))).text).not.toContain("older");
    expect((await kbsync("status", "--waiting")).text).toMatch(/scan\.pdf(?!.*older)/);
  };
  await isRead();
  await opened.pause(world.root);
  world.write("a.md", "quagga");
  await until(() => figures().status.sources[0]?.waiting === 1);
  expect((await kbsync("status", "--waiting")).text).toMatch(/a\.md: .*; an older version is searchable/);
  expect((await kbsync("why", at("a.md"))).text).toContain("; an older version is searchable");
  expect(await json("why", at("a.md"))).toMatchObject({ version: { hasOlder: true } });
  await opened.resume(world.root);
  await stop();
  await isRead();
  await start();
  await until(() => figures().status.sources[0]?.reading === 1);
  await isRead();
});

it("says of an unmounted folder nothing of what the service reads", async () => {
  await scanRead();
  renameSync(world.root, `${world.root}-away`);
  await until(() => figures().status.sources[0]?.halted === true);
  const { code, text } = await kbsync("wait");
  expect([code, text]).toEqual([1, expect.stringMatching(/: halted, nothing is sent: .*\)\n$/) as string]);
  expect(text).not.toContain("being read");
});

it("asks before it deletes the documents of a folder, also while all of its files wait", async () => {
  await SITUATIONS.find(({ name }) => name === "an unmounted folder")?.make();
  expect((await kbsync("remove", world.root)).text).toContain("this deletes 1 document of");
});

it("says of a stopped daemon that newer changes are unknown, and finds them where it compares", async () => {
  await synced();
  await stop();
  world.write("a.md", "quagga, and more");
  expect((await kbsync("status")).text).toContain("newer changes are unknown");
  const all = (await kbsync("status", world.root)).text;
  expect(all).not.toContain("every file is searchable as it is on disk");
  expect(all).toContain("no daemon runs");
  expect(await json("why", at("a.md"))).toMatchObject({ version: { state: "waiting" } });
  expect((await kbsync("wait")).text).toContain("no daemon runs");
  const verify = await kbsync("verify");
  expect([verify.code, verify.text]).toEqual([
    1,
    expect.stringContaining("0 of 1 file searchable, 1 waiting") as string,
  ]);
  expect((await kbsync("search", "zebra", "--fresh")).text).toContain("no daemon runs");
  await sayNoDaemon();
});

it("calls a configured folder not synced yet only while no daemon runs, which may have been started with others", async () => {
  const named = { path: world.root, ownerId: "docs-owner", collection: "fastest" };
  configure(named, { ...named, path: `${world.root}-other` });
  await synced();
  const { text } = await kbsync("status");
  expect(text).not.toContain("-other");
  expect(text).toMatch(/^files +1 file searchable\nsearch +by words$/m);
  await stop();
  expect((await kbsync("status")).text).toContain(`${world.root}-other\n         not synced yet`);
});

it("lists files that a daemon left unsent as it counts them", async () => {
  await SITUATIONS.find(({ name }) => name.startsWith("a backlog"))?.make();
  const stopped = stop();
  release();
  await stopped;
  const [source] = (await json<{ sources: SourceStatus[] }>("status")).sources;
  expect(source?.waiting).toBeGreaterThan(0);
  for (const args of [["--waiting"], [world.root]])
    expect((await kbsync("status", ...args)).text).toMatch(
      /^waiting +\S+docs: files not searchable yet when the daemon ended: \d+$/m,
    );
});

it("says of a daemon that starts again that it does, and waits for it", async () => {
  await synced();
  await stop();
  const starting = lockFolder(world.stateDir, "daemon");
  const words = `kbsync (process ${process.pid}) starts, stops or syncs once`;
  for (const args of [["status"], ["status", world.root], ["why", at("a.md")]])
    expect([args, (await kbsync(...args)).text]).toEqual([args, expect.stringContaining(words) as string]);
  const wait = kbsync("wait", "--timeout", "8");
  await new Promise(setImmediate);
  starting.release();
  await start();
  expect(await wait).toEqual({ code: 0, text: "" });
});

it.runIf(canMount())(
  "says of a daemon whose own disk is full why it ended, and takes nothing for done",
  async () => {
    const disk = mountDisk({ sizeKib: 8192 });
    try {
      Object.assign(world, { stateDir: join(disk.path, "state") });
      configure({ path: world.root, ownerId: "docs-owner", collection: "fastest" });
      await synced();
      disk.fill();
      const failure = running?.then(
        () => undefined,
        (error: unknown) => codeOf(error),
      );
      running = undefined;
      world.write("a.md", "quagga");
      expect(await failure).toBe("disk_full");
      await stop();
      const full = /no space is left on its disk/;
      for (const args of [["status"], ...LISTS, ["why", at("a.md")], ["wait"], ["wait", "--embedded"]])
        expect([args, (await kbsync(...args)).text]).toEqual([args, expect.stringMatching(full)]);
      expect((await kbsync("search", "zebra", "--fresh")).text).toMatch(full);
      expect(await kbsync("search", "zebra", "--files")).toEqual({ code: 0, text: `${at("a.md")}\n` });
      await sayNoDaemon();
      const verify = await kbsync("verify");
      expect([verify.code, verify.text]).toEqual([
        1,
        expect.stringContaining("0 of 1 file searchable, 1 waiting") as string,
      ]);
      expect(await json("why", at("a.md"))).toMatchObject({ version: { state: "waiting" } });
      disk.free();
      await (await start()).whenIdle();
      expect((await kbsync("verify")).code).toBe(0);
      expect(await json("why", at("a.md"))).toMatchObject({ version: { state: "searchable" } });
      await stop();
    } finally {
      disk.unmount();
    }
  },
);

it("says of a damaged ledger, wherever it is read, that it cannot be used", async () => {
  await synced();
  await stop();
  const ledger = join(world.stateDir, "ledger.db");
  for (const end of ["-wal", "-shm"]) rmSync(`${ledger}${end}`, { force: true });
  writeFileSync(ledger, "no database ".repeat(1000));
  for (const args of [
    ["status"],
    ["status", world.root],
    ...LISTS,
    ["why", at("a.md")],
    ["verify"],
    ["search", "zebra"],
    ["search", "zebra", "--fresh"],
  ])
    expect([args, await kbsync(...args)]).toEqual([
      args,
      { code: -1, text: expect.stringMatching(/ledger .*(damaged|not a database|cannot be)/) as string },
    ]);
  for (const args of [["wait"], ["wait", "--embedded"]])
    expect([args, (await kbsync(...args)).text]).toEqual([
      args,
      expect.stringContaining("no daemon runs") as string,
    ]);
  await sayNoDaemon();
});

it("says of a folder that left the configuration that its documents stay, and of its files nothing", async () => {
  await synced();
  await stop();
  const opened = await start({ sources: [] });
  await opened.whenIdle();
  // A daemon that was started with other folders has given up this one, too.
  expect((await kbsync("status")).text).not.toContain("not synced yet");
  configure();
  const status = await kbsync("status");
  expect(status.text).toContain("no longer synced; its 1 document is still searchable");
  expect(status.text).toContain("files    0 files searchable");
  for (const args of [
    ["why", at("a.md")],
    ["wait", at("a.md")],
    ["wait", "--embedded", at("a.md")],
    ["status", at("a.md")],
  ])
    expect([args, (await kbsync(...args)).code]).toEqual([args, -1]);
  for (const list of LISTS)
    expect([list, (await kbsync(...list)).text.includes("a.md")]).toEqual([list, false]);
  for (const args of [["wait"], ["wait", "--embedded"]])
    expect([args, await kbsync(...args)]).toEqual([args, { code: 0, text: "" }]);
  for (const args of [["--fresh"], []])
    expect([args, await kbsync("search", "zebra", "--files", ...args)]).toEqual([
      args,
      { code: 0, text: `${at("a.md")}\n` },
    ]);
  expect((await measured()).match(/kbsync_sync_files\{.*\} [1-9]/g)).toBeNull();
  expect(await measured()).toContain('kbsync_sync_sources{condition="removed"} 1');
  expect((await described()).data).toEqual({ daemon: "running", folders: [] });
  expect(needsOf(viewed()).map(({ key }) => key)).toContain(`removed ${world.root}`);
  // Nothing is left to compare.
  expect((await kbsync("verify")).text).toContain("nothing was compared yet");
});
