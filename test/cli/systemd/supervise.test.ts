import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openSupervisor,
  STALL_MS,
  START_MS_MAX,
  type Supervised,
  type Supervisor,
} from "../../../src/cli/systemd/supervise.ts";
import type { ProgressSample } from "../../../src/system/progress.ts";
import { type NotifySocket, openNotifySocket } from "../../system/socket.ts";

let socket: NotifySocket;
let supervisor: Supervisor;
let stopping: AbortController;
let received: string[];
let lines: { level: number; msg: string; subject?: string }[];
/** The clock of progress, set by the test; the rhythm of signs of life is real and quick. */
let nowMs: number;
let sample: ProgressSample;
let isReady: boolean;
/** How often the parts were checked: once for each sign of life that is due. */
let checks: number;
let words: string;
/** How often the clock of progress was read: at each tick. */
let clockReads: number;

const supervised: Supervised = {
  isReady: () => isReady,
  words: () => words,
  samples: () => {
    checks += 1;
    return { "the daemon": sample };
  },
};

beforeEach(() => {
  socket = openNotifySocket();
  stopping = new AbortController();
  received = [];
  lines = [];
  nowMs = 0;
  sample = { moves: 0, atWork: true, waitsForOthers: false };
  isReady = false;
  checks = 0;
  clockReads = 0;
  words = "1,204 files searchable, 3 waiting";
  supervisor = openSupervisor({
    // A sign of life is expected every 30 ms, so that one comes every ten.
    env: { NOTIFY_SOCKET: socket.address, WATCHDOG_USEC: "30000" },
    log: pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    signal: stopping.signal,
    nowMs: () => {
      clockReads += 1;
      return nowMs;
    },
  });
});
afterEach(() => {
  supervisor.close();
  socket.close();
});

/** Waits until the manager has received a message. */
async function receives(message: string): Promise<void> {
  await expect
    .poll(
      () => {
        received.push(...socket.take());
        return received;
      },
      { interval: 5, timeout: 15_000 },
    )
    .toContain(message);
}

const forget = (): void => {
  socket.take();
  received = [];
};

describe("a service manager", () => {
  it("a service manager gets the status and requests for more time during the start, and READY at its end", async () => {
    supervisor.watch(supervised);
    await receives("EXTEND_TIMEOUT_USEC=90000000");
    expect(received).not.toContain("READY=1");
    isReady = true;
    await receives("READY=1");
    expect(received.indexOf(`STATUS=${words}`)).toBeLessThan(received.indexOf("READY=1"));
    expect(received.filter((message) => message === "READY=1")).toHaveLength(1);
  });

  it("a service manager is asked for more time while nothing is watched yet for an hour, and for none beyond it", async () => {
    await receives("EXTEND_TIMEOUT_USEC=90000000");
    nowMs = START_MS_MAX;
    await expect.poll(() => lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 50, code: "start_too_long" });
    expect(lines[0]?.msg).toContain("the start has taken 60 min");
    forget();
    const [first] = lines;
    const before = clockReads;
    await expect.poll(() => clockReads).toBeGreaterThan(before + 3);
    expect(socket.take()).toEqual([]);
    expect(lines).toEqual([first]);
    // From then on progress counts.
    supervisor.watch(supervised);
    await receives("EXTEND_TIMEOUT_USEC=90000000");
  });

  it("a service manager is asked for an hour before what holds the loop up", async () => {
    supervisor.longStep();
    await receives("EXTEND_TIMEOUT_USEC=3600000000");
    expect(received).not.toContain("READY=1");
  });

  it("a service manager is not asked for more time for a stop that comes before the start is over", async () => {
    supervisor.watch(supervised);
    await receives("EXTEND_TIMEOUT_USEC=90000000");
    stopping.abort();
    await receives("STOPPING=1");
    forget();
    await receives("WATCHDOG=1");
    expect(received.filter((message) => message.startsWith("EXTEND"))).toEqual([]);
  });

  it("a service manager gets the status as it changes", async () => {
    isReady = true;
    supervisor.watch(supervised);
    await receives("READY=1");
    words = "1,207 files searchable";
    for (let change = 0; change < 1000; change += 1) supervisor.changed();
    await receives("STATUS=1,207 files searchable");
    expect(received.filter((message) => message.startsWith("STATUS="))).toHaveLength(2);
  });

  it("a service manager gets no keep-alive while the queue hangs, and the log names the part", async () => {
    isReady = true;
    supervisor.watch(supervised);
    await receives("WATCHDOG=1");
    nowMs = STALL_MS;
    await expect.poll(() => lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 50, subject: "the daemon" });
    expect(lines[0]?.msg).toContain("the daemon has made no progress for 5 min although there is work");
    forget();
    const before = checks;
    await expect.poll(() => checks).toBeGreaterThan(before + 3);
    expect(socket.take()).toEqual([]);
    sample = { ...sample, moves: 1 };
    await receives("WATCHDOG=1");
    expect(lines).toHaveLength(1);
  });

  it.each<[string, Partial<ProgressSample>]>([
    ["there is nothing to do", { atWork: false }],
    ["a service elsewhere is down", { waitsForOthers: true }],
  ])("a service manager gets keep-alives for hours while %s", async (_name, change) => {
    isReady = true;
    sample = { ...sample, ...change };
    supervisor.watch(supervised);
    await receives("WATCHDOG=1");
    nowMs = 100 * STALL_MS;
    forget();
    await receives("WATCHDOG=1");
    expect(lines).toEqual([]);
  });

  it("a service manager gets the status again at the end of a reload, with or without another program", async () => {
    isReady = true;
    supervisor.watch(supervised);
    await receives("READY=1");
    forget();
    supervisor.reloading();
    words = "not applied: sync: unknown key; 3 files in agreement";
    supervisor.reloaded();
    await receives("READY=1");
    expect(received[0]).toMatch(/^RELOADING=1\nMONOTONIC_USEC=\d+$/);
    expect(received[1]).toBe(`STATUS=${words}`);
    forget();
    supervisor.reloading();
    isReady = false;
    words = "4 files in agreement";
    supervisor.watch(supervised);
    isReady = true;
    await receives("READY=1");
    expect(received).toContain(`STATUS=${words}`);
  });

  it("a service manager gets READY at the end of a second reload that comes during the first", async () => {
    isReady = true;
    supervisor.watch(supervised);
    await receives("READY=1");
    forget();
    supervisor.reloading();
    isReady = false;
    supervisor.watch(supervised);
    supervisor.reloading();
    supervisor.reloaded();
    await receives("WATCHDOG=1");
    expect(received).not.toContain("READY=1");
    isReady = true;
    await receives("READY=1");
    expect(received.findLast((message) => /^(?:READY|RELOADING)/.test(message))).toBe("READY=1");
  });

  it("a service manager gets STOPPING for a stop that comes before anything is watched, and no READY after it", async () => {
    stopping.abort();
    await receives("STOPPING=1");
    forget();
    isReady = true;
    supervisor.watch(supervised);
    await receives("WATCHDOG=1");
    expect(received).not.toContain("READY=1");
  });

  it("a service manager gets STOPPING, and nothing after it", async () => {
    isReady = true;
    supervisor.watch(supervised);
    await receives("READY=1");
    stopping.abort();
    await receives("STOPPING=1");
    words = "0 files searchable";
    supervisor.changed();
    supervisor.close();
    forget();
    const before = checks;
    supervisor.changed();
    expect(socket.take()).toEqual([]);
    expect(checks).toBe(before);
  });
});
