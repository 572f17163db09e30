import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  kbsync,
  type Running,
  search,
  startProgram,
  startUp,
  statusOf,
  stop,
  temporaryFolder,
  until,
  type Ended,
} from "./program.ts";

const temporary = temporaryFolder("operator");
let docs: string;
let state: string;
let count = 0;
let running: Running | undefined;
beforeEach(() => {
  docs = join(temporary.path, `docs-${++count}`);
  state = join(temporary.path, `state-${count}`);
  mkdirSync(docs);
});
afterEach(async () => {
  if (running !== undefined) await stop(running);
  running = undefined;
});
afterAll(() => temporary.remove());

const up = async (): Promise<Running> => {
  const startMs = Date.now();
  running = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
  // The daemon opens its socket, in the state folder or elsewhere with a note, after the service answers.
  await until("the daemon's socket", () =>
    ["control.sock", "control.path"].some(
      (name) => (statSync(join(state, name), { throwIfNoEntry: false })?.ctimeMs ?? 0) >= startMs,
    ),
  );
  return running;
};
const ask = (...args: string[]): Promise<Ended> => kbsync([...args, "--state-dir", state]);
const write = (name: string, text: string): void => writeFileSync(join(docs, name), text);
/** Runs commands while the process is stopped (SIGSTOP). */
const whileStopped = async <T>({ child }: Running, run: () => Promise<T>): Promise<T> => {
  child.kill("SIGSTOP");
  try {
    return await run();
  } finally {
    child.kill("SIGCONT");
  }
};
const json = (ended: Ended): unknown => JSON.parse(ended.stdout);

describe("a daemon that runs", () => {
  it("every command names a stopped daemon that does not answer, and none takes it for another program's folder", async () => {
    write("a.md", "# A\n");
    const stopped = await up();
    expect(await ask("wait")).toMatchObject({ code: 0 });
    const commands = [
      "status",
      "status --failed",
      "wait",
      "pause",
      "resume",
      "retry",
      "log",
      "approve",
      "verify",
      `why ${join(docs, "a.md")}`,
      `erase ${docs}`,
      "search sea",
      "ask sea",
      `sync ${docs}`,
      `up ${docs} --port 0`,
      "serve --port 0",
    ];
    await whileStopped(stopped, async () => {
      const ends = await Promise.all(commands.map(async (command) => ask(...command.split(" "))));
      const words = `^kbsync: the (daemon|service) \\(process ${stopped.child.pid}\\) does not answer\n`;
      expect(ends.map(({ code }, at) => [commands[at], code])).toEqual(commands.map((each) => [each, 3]));
      for (const { stderr } of ends) expect(stderr).toMatch(new RegExp(words));
      const doctor = await ask("doctor");
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toContain(`the daemon (process ${stopped.child.pid}) does not answer`);
      expect(doctor.stdout).toContain(`the service (process ${stopped.child.pid}) does not answer`);
    });
    expect(await ask("status")).toMatchObject({ code: 0 });
  });

  it("a command that a daemon has begun to answer ends when the daemon is stopped", async () => {
    write("a.md", "# A\n");
    const stopped = await up();
    await ask("wait");
    const following = startProgram(["log", "-f", "--state-dir", state]);
    const closed = once(following.child, "close");
    await until("the log", () => following.output.stdout.includes("a.md"));
    await whileStopped(stopped, async () => expect(await closed).toEqual([3, null]));
    expect(following.output.stderr).toMatch(
      new RegExp(`^kbsync: the daemon \\(process ${stopped.child.pid}\\) does not answer\n`),
    );
  });

  it("changes no configuration for a daemon that does not answer", async () => {
    const config = join(temporary.path, `config-${count}.json`);
    const other = join(temporary.path, `other-${count}`);
    mkdirSync(other);
    const sources = [{ path: docs, collection: "fastest" }];
    writeFileSync(config, JSON.stringify({ sources, stateDir: state, service: { port: 0 } }));
    write("a.md", "# A\n");
    const stopped = (running = await startUp(["up", "--config", config], state));
    expect(await ask("wait", "--config", config)).toMatchObject({ code: 0 });
    const before = readFileSync(config, "utf8");
    await whileStopped(stopped, async () => {
      for (const args of [
        ["add", other],
        ["remove", docs, "--yes"],
        ["remove", docs, "--keep-documents"],
      ])
        expect([args, await ask(...args, "--config", config)]).toEqual([
          args,
          { code: 3, stdout: "", stderr: expect.stringContaining("does not answer") as string },
        ]);
    });
    expect(readFileSync(config, "utf8")).toBe(before);
    expect(await ask("remove", docs, "--yes", "--config", config)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("the daemon deletes 1 document now") as string,
    });
  });

  it("a second service beside a stopped one names that one", async () => {
    running = await startUp(["serve", "--port", "0"], state);
    const { child } = running;
    const second = await whileStopped(running, () => ask("serve", "--port", "0"));
    expect(second.stderr).toMatch(
      new RegExp(`^kbsync: the service \\(process ${child.pid}\\) does not answer\n`),
    );
    expect(second.code).toBe(3);
  });

  it("a running daemon is asked through a socket that is its owner's alone, and which is gone when it ends", async () => {
    write("a.md", "# A\n");
    const { child } = await up();
    expect(await ask("wait")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(lstatSync(join(state, "control.sock")).mode & 0o777).toBe(0o600);
    const status = await ask("status", "--json");
    expect(json(status)).toMatchObject({
      daemon: { pid: child.pid, idle: true, service: { kind: "open" } },
      service: { running: true },
      sources: [{ path: docs, searchable: 1, paused: false }],
      failures: [],
      skipped: [],
    });
    expect((await ask("status")).stdout).toContain(
      `daemon   running (process ${child.pid}), nothing to do\n`,
    );
    if (running !== undefined) await stop(running);
    expect(existsSync(join(state, "control.sock"))).toBe(false);
    expect(json(await ask("status", "--json"))).toMatchObject({ daemon: null });
    expect((await ask("status")).stdout).toContain(
      "daemon   no daemon runs, so newer changes are unknown, and these are the figures of the last pass\n",
    );
  });

  it("a second one on its state folder refuses and names it; its socket stays the first one's", async () => {
    write("a.md", "# A\n");
    const { child } = await up();
    const second = await ask("run");
    expect(second).toMatchObject({ code: 2 });
    const named = await kbsync(["sync", docs, "--state-dir", state]);
    expect(named.code).toBe(75);
    expect(named.stderr).toContain(`process ${child.pid}`);
    expect((await ask("wait")).code).toBe(0);
  });

  it("lets a dry run plan on a copy of its ledger", async () => {
    write("a.md", "# A\n");
    await up();
    await ask("wait");
    await ask("pause");
    write("b.md", "# B\n");
    const before = readdirSync(state).toSorted();
    const dry = await kbsync(["sync", "-n", docs, "--state-dir", state]);
    expect(dry.stderr).toBe("kbsync: a daemon is running, which does the following by itself\n");
    expect(dry.stdout).toMatch(/^create +b\.md/);
    expect(dry.stdout).not.toContain("a.md");
    expect(dry.code).toBe(0);
    expect(readdirSync(state).toSorted()).toEqual(before);
    await ask("resume");
    expect((await ask("wait")).code).toBe(0);
  });

  it("after kill -9 the next daemon takes the socket's place", async () => {
    write("a.md", "# A\n");
    const first = await up();
    await ask("wait");
    await stop(first, "SIGKILL");
    expect(existsSync(join(state, "control.sock"))).toBe(true);
    expect((await ask("wait")).stderr).toContain("no daemon runs on the state folder");
    const { child } = await up();
    expect(json(await ask("status", "--json"))).toMatchObject({ daemon: { pid: child.pid } });
  });

  it("a daemon works with a state folder whose path is too long for a socket, and says where it is", async () => {
    state = join(temporary.path, "s".repeat(60), "t".repeat(60));
    write("a.md", "# A\n");
    const { output } = await up();
    expect((await ask("wait")).code).toBe(0);
    expect(output.stderr).toContain("too long for a socket");
    expect(existsSync(join(state, "control.sock"))).toBe(false);
  });
});

it("a changed configuration is applied, or every command that reads it says why not", async () => {
  const file = join(temporary.path, `config-${count}.json`);
  const save = (more: object): void =>
    writeFileSync(file, JSON.stringify({ service: { port: 0 }, sources: [{ path: docs }], ...more }));
  const other = join(temporary.path, `other-${count}`);
  mkdirSync(other);
  save({});
  running = await startUp(["up", "--config", file], state);
  const { child } = running;
  const shown = async (command: string, words: string): Promise<unknown> =>
    until(`${words} in ${command}`, async () => {
      const { stdout, stderr } = await ask(command, "--config", file);
      return `${stdout}${stderr}`.includes(words);
    });
  save({ sources: [{ path: other }] });
  await shown("status", `source   ${other}`);
  save({ sources: [{ path: other }], kb: { unusedFileDays: 3 } });
  await shown("status", "config   not applied: kb.unusedFileDays needs a restart");
  expect((await ask("doctor", "--quick", "--config", file)).stdout).toContain(
    "warning: not applied: kb.unusedFileDays needs a restart",
  );
  writeFileSync(file, "{");
  await shown("status", `Not applied: the running kbsync up (process ${child.pid}) goes on`);
  await until("the refusal in the log", () => running?.output.stderr.includes("is not JSON") === true);
});

describe("wait", () => {
  it("returns when the file as it is can be found, and not before", async () => {
    write("a.md", "# A\n");
    const service = await up();
    await ask("wait");
    const { collectionId, ownerId } = await statusOf(docs, state);
    for (const word of ["zebra", "quagga", "okapi"]) {
      write("a.md", `# A\nThe ${word} is striped.\n`);
      expect(await ask("wait", join(docs, "a.md"))).toMatchObject({ code: 0, stdout: "" });
      const found = await search(service, {
        query: word,
        collection_id: collectionId ?? "",
        owner_id: ownerId,
      });
      expect(JSON.stringify(found)).toContain(`The ${word} is striped.`);
    }
    expect(json(await ask("wait", "--json"))).toMatchObject({ end: "searchable", reasons: [] });
  });

  it("wait ends with the reason where a file cannot come to agreement", async () => {
    write("a.md", "# A\n");
    await up();
    await ask("wait");
    write("bad.pdf", "%PDF-1.4 broken");
    const refused = await ask("wait", join(docs, "bad.pdf"));
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^bad\.pdf: /)]);

    write("a.tmp", "x");
    const leftOut = await ask("wait", join(docs, "a.tmp"));
    expect([leftOut.code, leftOut.stdout]).toEqual([1, expect.stringMatching(/a temporary file/)]);

    // A file that is written to all the time rests at no time.
    const writing = setInterval(() => write("busy.md", `# Busy\n${performance.now()}\n`), 20);
    try {
      const late = await ask("wait", join(docs, "busy.md"), "--timeout", "0.5");
      expect([late.code, late.stdout]).toEqual([124, expect.stringMatching(/^timed out: /)]);
    } finally {
      clearInterval(writing);
    }
    expect(await ask("wait", "/nowhere/a.md")).toMatchObject({ code: 2 });

    await ask("pause");
    write("a.md", "# Another\n");
    const paused = await ask("wait", join(docs, "a.md"));
    expect([paused.code, paused.stdout]).toEqual([1, expect.stringMatching(/paused/)]);
  });
});

describe("pause and resume", () => {
  it("pause and resume hold everything back, across a restart", async () => {
    write("a.md", "# A\n");
    await up();
    await ask("wait");
    expect(await ask("pause")).toMatchObject({ code: 0, stdout: `paused: ${docs}\n` });
    write("b.md", "# B\n");
    await until("the backlog", async () => (await statusOf(docs, state)).waiting === 1);
    if (running !== undefined) await stop(running);
    await up();
    await until("the backlog", async () => (await statusOf(docs, state)).waiting === 1);
    expect((await ask("status")).stdout).toMatch(
      /paused: nothing is sent until `kbsync resume --state-dir \S+`\n/,
    );
    expect(json(await ask("resume", docs, "--json"))).toEqual({ resumed: [docs] });
    expect(await ask("wait")).toMatchObject({ code: 0 });
    expect(await statusOf(docs, state)).toMatchObject({ searchable: 2, waiting: 0 });
  });

  it("pause and resume work without a daemon, and a pass then says what waits", async () => {
    write("a.md", "# A\n");
    const sync = (): Promise<Ended> => kbsync(["sync", docs, "--state-dir", state]);
    expect(await ask("pause")).toMatchObject({ code: 2 });
    await sync();
    expect(await ask("pause")).toMatchObject({ code: 0 });
    write("b.md", "# B\n");
    const held = await sync();
    expect(held.stdout).toContain("1 waiting");
    expect(held.stdout).toContain("paused");
    expect(held.code).toBe(1);
    expect(await ask("pause", "/elsewhere")).toMatchObject({ code: 2 });
    expect(await ask("resume")).toMatchObject({ code: 0 });
    expect((await sync()).code).toBe(0);
  });
});

describe("log", () => {
  it("log --follow ends with 3 when the daemon stops", async () => {
    write("a.md", "# A\n");
    const service = await up();
    await ask("wait");
    const following = startProgram(["log", "-f", "-n", "1", "--state-dir", state]);
    const closed = once(following.child, "close");
    await until("the log", () => following.output.stdout.includes("a.md"));
    await stop(service);
    expect(await closed).toEqual([3, null]);
    expect(following.output.stderr).toContain("the daemon is stopping");
  });

  it("lists what was done, with a daemon or without, as lines or JSON", async () => {
    write("a.md", "# A\n");
    await up();
    await ask("wait");
    const following = startProgram(["log", "-f", "-n", "0", "--json", "--state-dir", state]);
    await until("the follower", async () => {
      write("b.md", `# B\n${performance.now()}\n`);
      await ask("wait");
      return following.output.stdout.includes("b.md");
    });
    following.child.kill("SIGINT");
    const [code] = (await once(following.child, "close")) as [number];
    expect(code).toBe(130);
    const lines = await ask("log");
    expect(lines.stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}create {4}a\.md\n/);
    const of = await ask("log", join(docs, "a.md"), "--json");
    expect(JSON.parse(of.stdout)).toMatchObject({
      action: "create",
      path: "a.md",
      source: docs,
      outcome: "done",
    });
    if (running !== undefined) await stop(running);
    expect((await ask("log")).stdout.startsWith(lines.stdout)).toBe(true);
    expect((await ask("log", "-n", "1")).stdout.split("\n")).toHaveLength(2);
    expect(await ask("log", "-f")).toMatchObject({ code: 2 });
    expect(await ask("log", "/elsewhere")).toMatchObject({ code: 2 });
  });
});

describe("approve", () => {
  it("approve has a running daemon do what it held", async () => {
    for (const name of ["a", "b", "c"]) write(`${name}.md`, `# ${name}\n`);
    await up();
    await ask("wait");
    for (const name of ["a", "b", "c"]) unlinkSync(join(docs, `${name}.md`));
    expect(await ask("wait")).toMatchObject({ code: 1 });
    const status = await ask("status");
    expect(status.stdout).toContain("3 deletes held");
    expect(status.stdout).toMatch(/held\n {2}a\.md: /);
    const token = /kbsync approve --token (\w+)/.exec(status.stdout)?.[1] ?? "";
    expect((await ask("approve", "--token", token, docs)).stdout).toMatch(
      /^approved: .*, 3 deletes .*; the daemon deletes them now\n$/,
    );
    await until("the end", async () => (await ask("wait")).code === 0);
    expect(await statusOf(docs, state)).toMatchObject({ files: 0, held: 0 });
    expect((await ask("approve")).stdout).toBe("nothing is held\n");
  });
});

describe("retry and why", () => {
  it("retry and why answer with a daemon and without", async () => {
    const marked = "Tides [kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]";
    write("a.md", `---\ndescription: "${marked}"\n---\n# A\n`);
    write("bad.pdf", "%PDF-1.4 broken");
    const service = await up();
    // A wait for everything leaves out PDFs of a first sync.
    expect((await ask("wait", join(docs, "bad.pdf"))).code).toBe(1);
    expect((await ask("retry")).stdout).toBe("1 file is tried again now, and the folder is scanned\n");
    expect((await ask("retry", join(docs, "a.md"))).stdout).toBe(
      "no file failed, and none waits; the folder is scanned now\n",
    );
    const path = join(docs, "bad.pdf");
    await ask("wait", path);
    const live = await ask("why", path);
    expect(live.stdout).toMatch(/^error .*/m);
    expect(live.stdout).toMatch(/^state {7}failed: /m);
    expect((await ask("why", join(docs, "a.md"))).stdout).toMatch(/^description Tides$/m);
    expect(json(await ask("why", join(docs, "a.md"), "--json"))).toMatchObject({
      path: "a.md",
      ledger: { state: "agreed", title: "A" },
      next: { action: "nothing" },
      version: { state: "searchable" },
    });
    await stop(service);
    rmSync(join(docs, "a.md"));
    expect(json(await ask("why", join(docs, "a.md"), "--json"))).toMatchObject({
      disk: { kind: "absent" },
      next: { action: "delete" },
      daemon: null,
    });
    expect((await ask("retry", path)).stdout).toBe("1 file will be tried again by the next sync\n");
    const outside = await ask("why", "/elsewhere/a.md");
    expect(outside).toMatchObject({ code: 2, stdout: "" });
    expect(outside.stderr).toContain("/elsewhere/a.md is outside all sources");
  });
});

it("a dry run that finds a folder missing ends with 4, as the pass would", async () => {
  write("a.md", "# A\n");
  const config = join(temporary.path, "missing.json");
  const service = { port: 0 };
  writeFileSync(config, JSON.stringify({ service, sources: [{ path: docs }], stateDir: state }));
  expect((await kbsync(["sync", "--config", config])).code).toBe(0);
  rmSync(docs, { recursive: true });
  const dry = await kbsync(["sync", "--dry-run", "--config", config]);
  expect(dry.stdout).toMatch(/^halt /m);
  expect(dry.code).toBe(4);
  expect((await kbsync(["sync", "--config", config])).code).toBe(4);
});

describe("a hosted service that is not there", () => {
  let config: string;
  beforeAll(() => {
    config = join(temporary.path, "hosted.json");
  });

  it("a hosted service that is not there ends a pass within some ten seconds, and reports the outage meanwhile", async () => {
    write("a.md", "# A\n");
    const url = "http://127.0.0.1:9";
    const service = { apiUrl: url, dbUrl: url, resourcesUrl: url };
    writeFileSync(config, JSON.stringify({ service, sources: [{ path: docs }], stateDir: state }));
    const startMs = performance.now();
    const ended = await kbsync(["sync", "--config", config], { env: { KBSYNC_PAUTHKEY: "key" } });
    expect(ended.code).toBe(3);
    expect(ended.stderr).toMatch(
      /^kbsync: the service does not answer: .*; trying again until \d\d:\d\d:\d\d\n/m,
    );
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });
});
