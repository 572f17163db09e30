import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { isMachineFailure } from "../../../src/lib/capped/child.ts";
import { openCappedPool, type CappedPool, type CappedPoolOptions } from "../../../src/lib/capped/pool.ts";
import { isAlive } from "../../../src/lib/process-alive.ts";
import type { OddRequest } from "./odd-child.ts";

const BACKLOG = { lane: "backlog" } as const;
const MODULE = new URL("odd-child.ts", import.meta.url);

let pool: CappedPool<OddRequest, string> | undefined;
afterEach(() => pool?.close());

function open(
  module: URL = MODULE,
  more: Partial<CappedPoolOptions> = {},
  cpuMs?: number,
): CappedPool<OddRequest, string> {
  const failure = (code: string): Error => new Error(code);
  const bounds = { processes: 1, memoryMb: 256, cpuMs: 20_000, idleMs: 5000, ...more };
  pool = openCappedPool<OddRequest, string, "broken">({ module, failure, cpuMs: () => cpuMs }, bounds);
  return pool;
}

/** Starts a process with a child and returns both pids. */
async function startParent(
  ...args: string[]
): Promise<{ readonly parent: ChildProcess; readonly child: number }> {
  const module = fileURLToPath(new URL("abandoning-parent.ts", MODULE));
  const parent = spawn(process.execPath, ["--no-warnings", module, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [reported] = (await once(parent.stdout, "data")) as [Buffer];
  return { parent, child: Number(reported.toString()) };
}

/** Whether a process ends within some seconds; kills it otherwise. */
async function hasEnded(pid: number): Promise<boolean> {
  const endMs = performance.now() + 8000;
  while (isAlive(pid) && performance.now() < endMs) await sleep(20);
  const ended = !isAlive(pid);
  if (!ended) process.kill(pid, "SIGKILL");
  return ended;
}

/** The priorities of all threads of a process. */
function prioritiesOf(pid = ""): ReadonlySet<number> {
  return new Set(readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread))));
}

describe("a process that works on requests", () => {
  it("a process that crashes over an earlier request is replaced, and the request is answered", async () => {
    const opened = open();
    expect(await opened.ask({ deed: "answer" }, BACKLOG)).toEqual(["answer"]);
    expect(await opened.ask({ deed: "exit where used" }, BACKLOG)).toEqual(["exit where used"]);
  });

  it("a request that crashes two processes fails as a crash", async () => {
    await expect(open().ask({ deed: "exit" }, BACKLOG)).rejects.toThrow("fall");
  });

  it("a process that is stopped from outside says nothing about the request", async () => {
    await expect(open().ask({ deed: "end" }, BACKLOG)).rejects.toThrow("unable");
  });

  it("a process that the machine ends for want of memory says nothing about the request", async () => {
    await expect(open().ask({ deed: "be killed" }, BACKLOG)).rejects.toThrow("unable");
  });

  it.runIf(process.platform === "linux")(
    "the memory of a process is limited even if it could not be measured for the one before",
    async () => {
      const { execPath } = process;
      process.execPath = "/absent";
      const unstarted = open()
        .ask({ deed: "answer" }, BACKLOG)
        .finally(() => (process.execPath = execPath));
      await expect(unstarted).rejects.toThrow("unable");
      const [pid] = (await pool?.ask({ deed: "stay" }, BACKLOG)) ?? [];
      expect(readFileSync(`/proc/${pid}/limits`, "latin1")).toMatch(/^Max data size +\d/m);
    },
  );

  it("a process that does not start says nothing about the request", async () => {
    await expect(open(new URL("absent.ts", MODULE)).ask({ deed: "answer" }, BACKLOG)).rejects.toThrow(
      "unable",
    );
  });

  it("a child does not outlive a killed parent, whatever a library left running in it", async () => {
    const { parent, child } = await startParent();
    expect(isAlive(child)).toBe(true);
    parent.kill("SIGKILL");
    expect(await hasEnded(child)).toBe(true);
  }, 15_000);

  it("a child in a busy loop does not outlive a parent that exits", async () => {
    const { parent, child } = await startParent("spin");
    await once(parent, "exit");
    expect(await hasEnded(child)).toBe(true);
  }, 15_000);

  it.runIf(process.platform === "linux")(
    "a child in a busy loop does not outlive a parent that is killed",
    async () => {
      const { parent, child } = await startParent("spin", "killed");
      await once(parent, "exit");
      expect(await hasEnded(child)).toBe(true);
    },
    15_000,
  );

  it.runIf(process.platform === "linux")(
    "the main thread does not fork the children, whose start and end would block it",
    async () => {
      const { parent, child } = await startParent();
      const { pid = 0 } = parent;
      const children = (thread: number): string =>
        readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1");
      const threads = readdirSync(`/proc/${pid}/task`).map(Number);
      const having = threads.filter((thread) => children(thread).split(" ").includes(String(child)));
      parent.kill("SIGKILL");
      expect(await hasEnded(child)).toBe(true);
      expect(having).toHaveLength(1);
      expect(having).not.toContain(pid);
    },
  );

  it.runIf(process.platform === "linux")(
    "a signal to the group of this process, as of Ctrl-C in a terminal, does not reach a child",
    async () => {
      const groupOf = (pid: number | string): string | undefined =>
        /^\d+ \(.*\) \S+ \d+ (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
      const [pid = ""] = await open().ask({ deed: "stay" }, BACKLOG);
      expect(groupOf(process.pid)).toMatch(/^\d+$/);
      expect(groupOf(pid)).toBe(pid);
    },
  );

  it.runIf(process.platform === "linux")("all threads of a child have a lower priority", async () => {
    const [pid] = await open().ask({ deed: "stay" }, BACKLOG);
    const threads = readdirSync(`/proc/${pid}/task`);
    expect(threads.length).toBeGreaterThan(1);
    expect(prioritiesOf(pid)).toEqual(new Set([Math.min(19, getPriority() + 10)]));
  });

  it.runIf(process.platform === "linux")(
    "a child whose client waits has this process's priority",
    async () => {
      const [pid] = await open().ask({ deed: "stay" }, { lane: "client" });
      expect(prioritiesOf(pid)).toEqual(new Set([getPriority()]));
    },
  );
});

describe("processes that several accounts share", () => {
  it("a pool serves its tenants in turn, regardless of who asked first", async () => {
    const opened = open();
    const ended: string[] = [];
    const ask = async (account: string, name: string): Promise<void> => {
      await opened.ask({ deed: "answer" }, { ...BACKLOG, tenant: [account, "owner"] });
      ended.push(name);
    };
    await Promise.all([
      ...["busy 1", "busy 2", "busy 3", "busy 4"].map((name) => ask("busy", name)),
      ask("quiet", "quiet"),
    ]);
    expect(ended.indexOf("quiet")).toBeLessThan(2);
  });

  it("a tenant with requests one after another has its share of the time, not every other turn", async () => {
    const opened = open();
    const ended: string[] = [];
    const ask = async (account: string, deed: OddRequest["deed"]): Promise<void> => {
      await opened.ask({ deed }, { ...BACKLOG, tenant: [account] });
      ended.push(account);
    };
    const long = Promise.all(["spin on", "spin on"].map(() => ask("long", "spin on")));
    for (let page = 1; page <= 3; page++) await ask("short", "answer");
    await long;
    expect(ended).toEqual(["long", "short", "short", "short", "long"]);
  });

  it("a pool starts a guest process for an idle tenant", async () => {
    const opened = open(MODULE, { guests: 1 });
    const stop = new AbortController();
    const hanging = { ...BACKLOG, tenant: ["busy"], signal: stop.signal };
    const busy = Promise.allSettled([
      opened.ask({ deed: "hang" }, hanging),
      opened.ask({ deed: "hang" }, hanging),
    ]);
    expect(await opened.ask({ deed: "answer" }, { ...BACKLOG, tenant: ["quiet"] })).toEqual(["answer"]);
    stop.abort(new Error("enough"));
    await busy;
  });

  it.runIf(process.platform === "linux")("a request that exceeds its processor time fails", async () => {
    const opened = open(MODULE, {}, 300);
    await expect(opened.ask({ deed: "spin" }, BACKLOG)).rejects.toThrow("time");
    // Idle time does not count.
    expect(await opened.ask({ deed: "answer" }, BACKLOG)).toEqual(["answer"]);
  });

  it.runIf(process.platform === "linux")(
    "a process that hangs is replaced, and the request is answered",
    async () => {
      const opened = open(MODULE, { wallMs: 16_000 });
      expect(await opened.ask({ deed: "answer" }, BACKLOG)).toEqual(["answer"]);
      expect(await opened.ask({ deed: "hang where used" }, BACKLOG)).toEqual(["hang where used"]);
    },
    60_000,
  );

  it.runIf(process.platform === "linux")("reports the processor time that a request used", async () => {
    let totalMs = 0;
    const onUsed = (usedMs: number): void => void (totalMs += usedMs);
    await expect(open(MODULE, {}, 300).ask({ deed: "spin" }, { ...BACKLOG, onUsed })).rejects.toThrow("time");
    expect(totalMs).toBeGreaterThanOrEqual(300);
  });

  it("a request of a waiting client overtakes a full backlog", async () => {
    const opened = open();
    const stop = new AbortController();
    const ask = { ...BACKLOG, tenant: ["one"], signal: stop.signal };
    const backlog = Promise.allSettled([
      opened.ask({ deed: "hang" }, ask),
      opened.ask({ deed: "answer" }, ask),
    ]);
    expect(await opened.ask({ deed: "answer" }, { tenant: ["one"], lane: "client" })).toEqual(["answer"]);
    stop.abort(new Error("enough"));
    expect(await backlog).toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
  });

  it.runIf(process.platform === "linux")("a child can raise the processor time of its request", async () => {
    expect(await open(MODULE, {}, 300).ask({ deed: "spin on" }, BACKLOG)).toEqual(["spin on"]);
  });
});

describe("isMachineFailure", () => {
  it.each([
    ["a file that is gone", "ENOENT", true],
    ["no more handles", "EMFILE", true],
    ["a library that cannot be loaded", "ERR_MODULE_NOT_FOUND", true],
    ["a channel that is closed", "ERR_IPC_CHANNEL_CLOSED", true],
    ["bytes that are not of their encoding", "ERR_ENCODING_INVALID_ENCODED_DATA", false],
    ["an argument out of range", "ERR_OUT_OF_RANGE", false],
    ["a library's own word", "FORMAT_BROKEN", false],
    ["no code", undefined, false],
  ])("distinguishes faults of the machine from those of the document: %s", (_name, code, isMachine) => {
    expect(isMachineFailure(Object.assign(new Error("x"), { code }))).toBe(isMachine);
  });
});
