import { spawnSync } from "node:child_process";
import { type BigIntStats, closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { logText, openLog } from "../../../src/cli/terminal/log.ts";

it("refuses a level or a format it does not know, naming those it knows", () => {
  expect(() => openLog({ KBSYNC_LOG: "loud" }, false)).toThrow(
    /KBSYNC_LOG: expected one of debug, .*got "loud"/,
  );
  expect(() => openLog({ KBSYNC_LOG_FORMAT: "xml" }, false)).toThrow(
    /KBSYNC_LOG_FORMAT: expected one of text, json, got "xml"/,
  );
});

it("never writes a key, wherever it stands", () => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/terminal/log.ts", import.meta.url).href)};
    const log = openLog({ KBSYNC_LOG: "debug", KBSYNC_LOG_FORMAT: "json" }, false);
    log.info({ pauthkey: "kb_secret" }, "top");
    log.info({ headers: { pauthkey: "kb_secret" } }, "headers");
    log.info({ req: { headers: { pauthkey: "kb_secret" } } }, "request");
    log.info({ options: { service: { pauthkey: "kb_secret" } } }, "options");
    log.flush();`;
  const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(status).toBe(0);
  expect(stderr.split("\n").filter((line) => line.includes("[Redacted]"))).toHaveLength(4);
  expect(stderr).not.toContain("kb_secret");
});

/** Logs a line of each level with standard error on a file, and gives what is in it. */
function logged(env: (stderr: BigIntStats) => NodeJS.ProcessEnv): string {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-log-"));
  const file = openSync(join(folder, "stderr"), "w+");
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/terminal/log.ts", import.meta.url).href)};
    const log = openLog(process.env, false);
    for (const level of ["debug", "info", "warn", "error"]) log[level]({ n: 1 }, "a line");
    log.child({ part: "service" }).warn("of a part");`;
  const childEnv = { ...process.env, KBSYNC_LOG: "debug", ...env(fstatSync(file, { bigint: true })) };
  spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "ignore", file],
    env: childEnv,
  });
  const text = readFileSync(join(folder, "stderr"), "utf8");
  closeSync(file);
  rmSync(folder, { recursive: true });
  return text;
}

it("puts the journal's priorities before the lines where standard error is the journal", () => {
  const journal = ({ dev, ino }: BigIntStats) => ({ JOURNAL_STREAM: `${dev}:${ino}` });
  expect(logged(journal)).toBe("<7>a line\n<6>a line\n<4>a line\n<3>a line\n<4>of a part\n");
  const lines = logged((stderr) => ({ ...journal(stderr), KBSYNC_LOG_FORMAT: "json" }))
    .trimEnd()
    .split("\n");
  expect(lines.map((line) => line.slice(0, 4))).toEqual(["<7>{", "<6>{", "<4>{", "<3>{", "<4>{"]);
  expect(JSON.parse(lines[4]?.slice(3) ?? "")).toMatchObject({
    level: 40,
    part: "service",
    msg: "of a part",
  });
});

it.each([
  ["nothing says that it is", () => ({ JOURNAL_STREAM: "" })],
  ["it was sent elsewhere", ({ dev, ino }: BigIntStats) => ({ JOURNAL_STREAM: `${dev}:${ino + 1n}` })],
])("writes lines with time and level where %s, and plain lines of JSON if asked", (_name, env) => {
  expect(logged(env).replaceAll(/^[\d-]+T[\d:]+Z /gm, "")).toBe(
    "DEBUG a line\nINFO  a line\nWARN  a line\nERROR a line\nWARN  of a part\n",
  );
  const lines = logged((stderr) => ({ ...env(stderr), KBSYNC_LOG_FORMAT: "json" }))
    .trimEnd()
    .split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { level: number }).level)).toEqual([20, 30, 40, 50, 40]);
});

it("writes each message to a terminal as one line without control characters", () => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/terminal/log.ts", import.meta.url).href)};
    const log = openLog({ NO_COLOR: "1" }, true);
    const hostile = "a\\u001b[2J\\nall in agreement \\u009b1m\\u202e";
    log.warn({ path: hostile, err: new Error(hostile) }, hostile);`;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  expect(stderr).toMatch(/^[\d:]{8} WARN {2}.*\n$/);
  expect(stderr).toContain(String.raw`a\u001b[2J\nall in agreement \u009b1m\u202e`);
});

it("shows cause and advice once, and a stack only of what nobody expected", () => {
  const err = { message: "the disk is full", stack: "Error: the disk is full\n    at write (a.ts:1:1)" };
  const text = (record: object): string =>
    logText(JSON.stringify({ time: Date.UTC(2026, 10, 22, 13, 12, 19), ...record }), {
      target: "file",
      isColoured: false,
    });
  expect(text({ level: 40, msg: "a.md was refused: it is empty", hint: "write something" })).toBe(
    "2026-11-22T13:12:19Z WARN  a.md was refused: it is empty (write something)\n",
  );
  expect(text({ level: 50, msg: "stopped", err: { ...err, code: "ENOSPC" } })).toBe(
    "2026-11-22T13:12:19Z ERROR stopped: the disk is full\n",
  );
  expect(text({ level: 50, msg: "the disk is full", err })).toBe(
    "2026-11-22T13:12:19Z ERROR the disk is full\n    at write (a.ts:1:1)\n",
  );
});

it("wraps a line to the width of a terminal, and keeps commands and paths whole", () => {
  const text = (record: object): string =>
    logText(JSON.stringify({ time: 0, level: 40, ...record }), {
      target: "terminal",
      isColoured: false,
      cells: 50,
      invocation: { program: "kbsync", options: "--state-dir /s" },
    }).replace(/^[\d:]{8}/, "12:00:00");
  expect(
    text({
      msg: "notes/plan of the year.md was refused: it is too large for it",
      path: "notes/plan of the year.md",
    }),
  ).toBe("12:00:00 WARN  notes/plan of the year.md was\n               refused: it is too large for it\n");
  expect(text({ msg: "12 deletes wait", hint: "`kbsync approve` lists them" })).toBe(
    "12:00:00 WARN  12 deletes wait\n               (`kbsync approve --state-dir /s`\n               lists them)\n",
  );
});
