import { describe, expect, it } from "vitest";
import type { ReachedService } from "../../../src/cli/compose/embedded-service.ts";
import { supervisedDaemon } from "../../../src/cli/commands/run-daemon.ts";
import { servicePulse } from "../../../src/cli/systemd/service-pulse.ts";
import { openStopBudget } from "../../../src/cli/systemd/stop-budget.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { DaemonPulse } from "../../../src/sync/daemon/status.ts";
import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import { IDLE_STATUS } from "../../fakes/status.ts";

const config = loadConfig({ stateDir: "/nonexistent/state", cwd: "/nonexistent", env: {} });
const ELSEWHERE: ReachedService = {
  apiUrl: "http://127.0.0.1:9",
  dbUrl: "http://127.0.0.1:9",
  pauthkey: "key",
  identity: "elsewhere",
  close: async () => undefined,
};
const HERE: ReachedService = { ...ELSEWHERE, identity: "embedded", probe: async () => undefined };

const STATUS: DaemonStatus = { ...IDLE_STATUS, idle: false };

function supervised(service: ReachedService, isPlanned: boolean, pace: DaemonPulse["service"]) {
  const daemon = {
    status: () => STATUS,
    figures: () => ({ status: STATUS, oldestWaitingSeconds: 0, concurrency: 1, planned: isPlanned }),
    pulse: () => ({
      queue: { moves: 3, atWork: true },
      scan: { moves: 5, atWork: false },
      service: pace,
    }),
  };
  return supervisedDaemon(daemon, { config, service }, servicePulse(service));
}

describe("a daemon under a service manager", () => {
  it.each<[string, ReachedService, boolean, DaemonPulse["service"], boolean, boolean]>([
    ["that has checked all folders is ready", ELSEWHERE, true, "open", true, false],
    ["that is still checking is not", ELSEWHERE, false, "open", false, false],
    [
      "whose service elsewhere is down is ready, and waits for others",
      ELSEWHERE,
      false,
      "waiting",
      true,
      true,
    ],
    [
      "whose key is refused elsewhere is ready, and waits for others",
      ELSEWHERE,
      false,
      "key_refused",
      true,
      true,
    ],
    ["whose own service does not answer has no excuse", HERE, false, "waiting", false, false],
    ["whose own service answered once is ready, and has no excuse", HERE, true, "waiting", true, false],
  ])("a daemon %s", (_name, service, isPlanned, pace, isReady, waitsForOthers) => {
    const reported = supervised(service, isPlanned, pace);
    expect(reported.isReady()).toBe(isReady);
    const { "the service": own, ...parts } = reported.samples();
    expect(parts).toEqual({
      "the queue": { moves: 3, atWork: true, waitsForOthers },
      "the scan of the folders": { moves: 5, atWork: false, waitsForOthers },
    });
    expect(own !== undefined).toBe(service === HERE);
  });

  it("reports a scan until the first one has ended", () => {
    expect(supervised(HERE, false, "open").words()).toBe("scanning the folders; 0 files searchable");
    expect(supervised(HERE, true, "open").words()).toBe("0 files searchable");
  });
});

it("a service that does not answer its probe stands still, and is not asked again before it does", async () => {
  const answers: (() => void)[] = [];
  const pulse = servicePulse({ probe: async () => new Promise((resolve) => void answers.push(resolve)) });
  expect(pulse()).toEqual({ "the service": { moves: 0, atWork: false, waitsForOthers: false } });
  const asked = { "the service": { moves: 0, atWork: true, waitsForOthers: false } };
  expect([pulse(), pulse(), answers.length]).toEqual([asked, asked, 1]);
  answers[0]?.();
  await expect.poll(() => pulse()["the service"]?.moves).toBe(1);
});

it("a service whose probe fails stands still, until one succeeds", async () => {
  let fails = true;
  const pulse = servicePulse({
    probe: async () => {
      if (fails) throw new Error("a thread of the store is gone");
    },
  });
  const read = async (): Promise<unknown> => {
    pulse();
    await new Promise<void>((resolve) => void setImmediate(resolve));
    return pulse()["the service"];
  };
  expect(await read()).toMatchObject({ moves: 0, atWork: true });
  fails = false;
  await expect.poll(read).toMatchObject({ moves: expect.any(Number), atWork: false });
});

it("what a stop may still take shrinks from the signal on, and never to nothing", async () => {
  const stopping = new AbortController();
  const budget = openStopBudget(stopping.signal);
  const whole = budget.leftMs();
  expect(budget.leftMs()).toBe(whole);
  expect(whole).toBeLessThan(10_000);
  stopping.abort();
  await expect.poll(() => budget.leftMs()).toBeLessThan(whole);
  expect(budget.leftMs()).toBeGreaterThan(0);
});
