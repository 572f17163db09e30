import { spawnSync } from "node:child_process";
import { type BigIntStats, closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openLog } from "../../../src/cli/output/log.ts";

it("refuses a level it does not know, naming those it knows", () => {
  expect(() => openLog({ KBSYNC_LOG: "loud" }, false)).toThrow(
    /KBSYNC_LOG: expected one of debug, .*got "loud"/,
  );
});

it("never writes a key, wherever it stands", () => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/output/log.ts", import.meta.url).href)};
    const log = openLog({ KBSYNC_LOG: "debug" }, false);
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
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/output/log.ts", import.meta.url).href)};
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
  const lines = logged(({ dev, ino }) => ({ JOURNAL_STREAM: `${dev}:${ino}` }))
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
])("writes plain lines of JSON where %s", (_name, env) => {
  const lines = logged(env).trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { level: number }).level)).toEqual([20, 30, 40, 50, 40]);
});

it("writes each message to a terminal as one line without control characters", () => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../../src/cli/output/log.ts", import.meta.url).href)};
    const log = openLog({}, true);
    const hostile = "a\\u001b[2J\\nall in agreement \\u009b1m\\u202e";
    log.warn({ path: hostile, err: new Error(hostile) }, hostile);`;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  expect(stderr).toMatch(/^\[[\d:]+\] WARN: .*\n$/);
  expect(stderr).toContain(String.raw`a\u001b[2J\nall in agreement \u009b1m\u202e`);
});
