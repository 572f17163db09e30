import { pino } from "pino";
import { beforeEach, describe, expect, it } from "vitest";
import { type Ground, openReloads, type Reloads } from "../../../src/cli/commands/reload.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";

const PLAIN = loadConfig({ stateDir: "/nonexistent/state", cwd: "/nonexistent", env: {} });
const SERVICE = {
  apiUrl: "http://127.0.0.1:9",
  dbUrl: "http://127.0.0.1:9",
  pauthkey: "key",
  identity: "here",
  close: async () => undefined,
};
const GROUND: Ground = { config: PLAIN, service: SERVICE };

let lines: { level: number; msg: string; code?: string }[];
let reported: (string | undefined)[];
let hangup: () => void;
let answers: (() => Ground)[];

function open(read?: () => Promise<Ground>): Reloads {
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return openReloads({
    context: {
      onHangup: (listener) => {
        hangup = listener;
        return () => (hangup = () => undefined);
      },
    },
    log: pino({ base: null }, sink),
    supervisor: {
      reloading: () => void reported.push("reloading"),
      reloaded: (words) => void reported.push(words ?? "all is well"),
    },
    ground: GROUND,
    read:
      read ??
      (() => {
        const next = answers.shift();
        if (next === undefined) throw new TypeError("read too often");
        return next();
      }),
  });
}
beforeEach(() => {
  lines = [];
  reported = [];
  answers = [];
});

/** Signals, and waits until that was answered. */
async function hangUp(): Promise<void> {
  const before = reported.length;
  hangup();
  await expect.poll(() => reported.length).toBeGreaterThan(before);
  await expect.poll(() => lines.length).toBeGreaterThan(0);
}

const withPace = (settleMs: number): Ground => ({
  ...GROUND,
  config: { ...PLAIN, sync: { ...PLAIN.sync, settleMs } },
});

describe("at a SIGHUP", () => {
  it("a SIGHUP opens the daemon again if its configuration changed", async () => {
    const reloads = open();
    answers.push(() => withPace(7));
    const signal = reloads.signal();
    await hangUp();
    await expect.poll(() => signal.aborted).toBe(true);
    expect(reloads.take()?.config.sync.settleMs).toBe(7);
    expect(reloads.signal().aborted).toBe(false);
    expect(reloads.take()).toBeUndefined();
    // READY is sent when the new daemon is ready, not here.
    expect(reported).toEqual(["reloading"]);
    expect(lines[0]?.msg).toBe("reloaded the configuration: sync.settleMs");
  });

  it("uses a new key of the service, and does not log it", async () => {
    const reloads = open();
    answers.push(() => ({ ...GROUND, service: { ...SERVICE, pauthkey: "another" } }));
    await hangUp();
    await expect.poll(() => reloads.signal().aborted).toBe(true);
    expect(reloads.take()?.service.pauthkey).toBe("another");
    expect(JSON.stringify(lines)).toContain("the service's key");
    expect(JSON.stringify(lines)).not.toContain("another");
  });

  it("a configuration that cannot be used is refused with words, and the old one stays", async () => {
    const reloads = open();
    answers.push(
      () => {
        throw new KbsyncError("c.json: sync.settleMs: expected number\nc.json: more", {
          code: "config_invalid",
        });
      },
      () => withPace(8),
    );
    await hangUp();
    await expect.poll(() => reported).toHaveLength(2);
    expect(reported).toEqual([
      "reloading",
      "the configuration is refused: c.json: sync.settleMs: expected number",
    ]);
    expect(lines).toMatchObject([{ level: 50, code: "config_invalid" }]);
    expect(reloads.signal().aborted).toBe(false);
    expect(reloads.take()).toBeUndefined();
    await hangUp();
    await expect.poll(() => reloads.signal().aborted).toBe(true);
  });

  it("a SIGHUP names settings that need another start", async () => {
    const reloads = open();
    answers.push(() => ({ ...GROUND, config: { ...PLAIN, stateDir: "/elsewhere" } }));
    await hangUp();
    await expect.poll(() => reported).toEqual(["reloading", "all is well"]);
    expect(lines.map(({ msg }) => msg)).toEqual([
      "changed in the configuration, effective after the next start: stateDir",
      "reloaded the configuration: nothing changed",
    ]);
    expect(reloads.take()).toBeUndefined();
  });

  it("two in a row are answered one after the other", async () => {
    const reloads = open();
    answers.push(
      () => withPace(7),
      () => withPace(9),
    );
    hangup();
    hangup();
    await expect.poll(() => reported).toEqual(["reloading", "reloading"]);
    await expect.poll(() => lines).toHaveLength(2);
    expect(reloads.take()?.config.sync.settleMs).toBe(9);
  });

  it("several SIGHUPs while one is handled cause one more reload", async () => {
    let answer: (ground: Ground) => void = () => undefined;
    const reloads = open(() => new Promise((resolve) => (answer = resolve)));
    hangup();
    await expect.poll(() => reported).toEqual(["reloading"]);
    hangup();
    hangup();
    hangup();
    answer(GROUND);
    await expect.poll(() => reported).toEqual(["reloading", "all is well", "reloading"]);
    answer(withPace(7));
    await expect.poll(() => reloads.signal().aborted).toBe(true);
    // One that comes later is a new one.
    hangup();
    await expect.poll(() => reported).toEqual(["reloading", "all is well", "reloading", "reloading"]);
    answer(withPace(7));
    await expect.poll(() => reported.at(-1)).toBe("all is well");
  });

  it("a SIGHUP after the end reads nothing", () => {
    open().stop();
    hangup();
    expect(reported).toEqual([]);
  });
});
