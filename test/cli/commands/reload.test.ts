import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Ground, openReloads, type Reloads, statusWords } from "../../../src/cli/commands/reload.ts";
import { type ConfigRequest, loadConfig } from "../../../src/config/load.ts";
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
      cwd: "/nonexistent",
      env: {},
      onHangup: (listener) => {
        hangup = listener;
        return () => (hangup = () => undefined);
      },
    },
    log: pino({ base: null }, sink),
    supervisor: {
      reloading: () => void reported.push("reloading"),
      reloaded: () => void reported.push("reloaded"),
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
    expect(reported).toEqual(["reloading", "reloaded"]);
    expect(statusWords(reloads.notApplied(), "3 files")).toBe(
      "not applied: c.json: sync.settleMs: expected number; 3 files",
    );
    expect(lines).toMatchObject([{ level: 50, code: "config_invalid" }]);
    expect(reloads.signal().aborted).toBe(false);
    expect(reloads.take()).toBeUndefined();
    await hangUp();
    await expect.poll(() => reloads.signal().aborted).toBe(true);
    expect(reloads.notApplied()).toEqual([]);
  });

  it("a SIGHUP names settings that need another start", async () => {
    const reloads = open();
    answers.push(() => ({ ...GROUND, config: { ...PLAIN, stateDir: "/elsewhere" } }));
    await hangUp();
    await expect.poll(() => reported).toEqual(["reloading", "reloaded"]);
    expect(lines.map(({ msg }) => msg)).toEqual([
      "not applied: stateDir needs a restart",
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
    await expect.poll(() => reported).toEqual(["reloading", "reloaded", "reloading"]);
    answer(withPace(7));
    await expect.poll(() => reloads.signal().aborted).toBe(true);
    // One that comes later is a new one.
    hangup();
    await expect.poll(() => reported).toEqual(["reloading", "reloaded", "reloading", "reloading"]);
    answer(withPace(7));
    await expect.poll(() => reported.at(-1)).toBe("reloaded");
  });

  it("a SIGHUP after the end reads nothing", () => {
    open().stop();
    hangup();
    expect(reported).toEqual([]);
  });
});

describe("when a file has changed", () => {
  let base: string;
  let file: string;
  let key: string;
  let reloads: Reloads;
  const env: Record<string, string> = {};
  const write = (config: object): void => writeFileSync(file, JSON.stringify(config));
  const messages = (): string[] => lines.map(({ msg }) => msg);

  /** Opens the reloads of a daemon on the configuration in `file`. */
  const start = (request: Partial<ConfigRequest> = { file }): void => {
    const read = (): Ground => ({
      config: loadConfig({ cwd: base, env: { XDG_STATE_HOME: base }, ...request }),
      service: { ...SERVICE, pauthkey: readFileSync(key, "utf8") },
    });
    const sink = { write: (line: string) => void lines.push(JSON.parse(line)) };
    reloads = openReloads({
      context: { cwd: base, env },
      log: pino({ base: null }, sink),
      supervisor: { reloading: () => undefined, reloaded: () => undefined },
      ground: read(),
      read,
      everyMs: 20,
    });
  };
  const taken = async (): Promise<Ground> => {
    await expect.poll(() => reloads.signal().aborted).toBe(true);
    const next = reloads.take();
    if (next === undefined) throw new Error("nothing changed");
    return next;
  };

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "kbsync-reload-"));
    file = join(base, "kbsync.config.json");
    key = join(base, "key");
    delete env["CREDENTIALS_DIRECTORY"];
    writeFileSync(key, "first");
    write(hosted({}));
    start();
  });
  afterEach(() => {
    reloads.stop();
    rmSync(base, { recursive: true });
  });
  const hosted = (more: object): object => ({
    service: {
      apiUrl: "http://127.0.0.1:9",
      dbUrl: "http://127.0.0.1:9",
      resourcesUrl: "http://127.0.0.1:9",
      pauthkeyFile: "key",
    },
    ...more,
  });

  it("applies a configuration that was written in place, or saved by a rename", async () => {
    write(hosted({ sync: { trashDays: 5 } }));
    expect((await taken()).config.sync.trashDays).toBe(5);
    writeFileSync(`${file}.new`, JSON.stringify(hosted({ sync: { trashDays: 8 } })));
    renameSync(`${file}.new`, file);
    expect((await taken()).config.sync.trashDays).toBe(8);
  });

  it("reports a configuration that is invalid or missing until a valid one replaces it", async () => {
    writeFileSync(file, "{");
    await expect.poll(() => reloads.notApplied()).toEqual([expect.stringContaining("is not JSON")]);
    rmSync(file);
    await expect.poll(() => reloads.notApplied()).toEqual([`there is no configuration file ${file}`]);
    expect(messages()).toContain(
      `not applied, the former configuration stays in force: there is no configuration file ${file}`,
    );
    write(hosted({}));
    await expect.poll(() => reloads.notApplied()).toEqual([]);
    expect(reloads.signal().aborted).toBe(false);
  });

  it("reports a setting that needs a restart until it is changed back", async () => {
    write(hosted({ stateDir: "elsewhere" }));
    await expect.poll(() => reloads.notApplied()).toEqual(["stateDir needs a restart"]);
    write(hosted({}));
    await expect.poll(() => reloads.notApplied()).toEqual([]);
  });

  it("applies a new key, and reports one that the service manager passes at a start only", async () => {
    writeFileSync(key, "second");
    expect((await taken()).service.pauthkey).toBe("second");
    reloads.stop();
    env["CREDENTIALS_DIRECTORY"] = join(base, "given");
    mkdirSync(join(base, "given"));
    writeFileSync(join(base, "given", "pauthkey"), "second");
    const passed = key;
    key = join(base, "given", "pauthkey");
    start();
    writeFileSync(passed, "third");
    await expect.poll(() => reloads.notApplied()).toEqual([`${passed} needs a restart`]);
  });

  it("applies a configuration that is created after a start without one, and reports folders that it only names", async () => {
    reloads.stop();
    rmSync(file);
    start({ folders: [{ path: "docs" }] });
    write({ sync: { trashDays: 5 }, sources: [{ path: "docs" }, { path: "other" }] });
    const { config } = await taken();
    expect(config.sync.trashDays).toBe(5);
    expect(config.file).toBe(file);
    expect(reloads.notApplied()).toEqual([
      `source ${join(base, "other")} needs a start without folders on the command line`,
    ]);
    rmSync(file);
    expect((await taken()).config.sync.trashDays).toBe(PLAIN.sync.trashDays);
    expect(reloads.notApplied()).toEqual([]);
    writeFileSync(file, "{");
    await expect.poll(() => reloads.notApplied()).toEqual([expect.stringContaining("is not JSON")]);
  });

  it("reads nothing for a change that the program made and reported itself", async () => {
    write(hosted({ sync: { trashDays: 5 } }));
    await reloads.reload();
    expect(reloads.take()?.config.sync.trashDays).toBe(5);
    // The next change is the next that is logged.
    write(hosted({ sync: { trashDays: 8 } }));
    await taken();
    expect(messages()).toEqual(Array(2).fill("reloaded the configuration: sync.trashDays"));
  });
});
