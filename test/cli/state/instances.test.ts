import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Context } from "../../../src/cli/output/context.ts";
import type { CommonOptions } from "../../../src/cli/output/options.ts";
import { useRunningInstance } from "../../../src/cli/state/find-instance.ts";
import {
  type Instance,
  type InstanceFacts,
  registerInstance,
  runningInstances,
} from "../../../src/cli/state/instances.ts";
import { codeOf } from "../../../src/lib/failure.ts";

let folder: string;
let env: NodeJS.ProcessEnv;
let others: ChildProcess[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-instances-"));
  env = { XDG_RUNTIME_DIR: join(folder, "run"), XDG_STATE_HOME: join(folder, "home") };
  others = [];
  for (const name of ["docs", "docs/deep", "wiki", "elsewhere"]) mkdirSync(join(folder, name));
});
afterEach(() => {
  for (const child of others) child.kill();
  rmSync(folder, { recursive: true });
});

const about = (name: string, change: Partial<InstanceFacts> = {}): InstanceFacts => ({
  command: "up",
  stateDir: join(folder, `${name}-state`),
  config: null,
  folders: [join(folder, name)],
  ...change,
});
const fail = (words: string): void => expect.unreachable(words);
const registry = (): string => join(folder, "run", "kbsync");
const entry = (pid: number | undefined): string => join(registry(), `${pid}.json`);

/** Registers this process, or another one by giving it a copy of this one's entry. */
const register = (facts: InstanceFacts) => registerInstance(env, facts, fail);
function registerOther(facts: InstanceFacts): void {
  const child = spawn("sleep", ["60"]);
  others.push(child);
  registerPid(child.pid ?? 0, facts);
}
function registerPid(pid: number, facts: InstanceFacts): void {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const startMark = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  mkdirSync(registry(), { recursive: true });
  const instance: Instance = { pid, startMark, ...facts };
  writeFileSync(entry(pid), JSON.stringify(instance));
}

/** What a command line comes to in a folder. */
function chosen(cwd: string, args: readonly string[] = [], options: CommonOptions = {}): CommonOptions {
  const program = new Command("kbsync");
  let found: CommonOptions = {};
  program
    .command("status")
    .argument("[path]")
    .option("--state-dir <dir>")
    .option("--config <file>")
    .action((_path, given: CommonOptions) => void (found = given));
  program.hook("preAction", (_, command) =>
    useRunningInstance({ env, cwd: join(folder, cwd) } as Context, command, ["status", ...args]),
  );
  const flags = options.stateDir === undefined ? [] : ["--state-dir", options.stateDir];
  program.parse(["status", ...args, ...flags], { from: "user" });
  return found;
}

describe("the registry", () => {
  it("lists a registered process until it removes itself, readable by its user alone", () => {
    const registration = register(about("docs"));
    expect(runningInstances(env)).toMatchObject([{ pid: process.pid, ...about("docs") }]);
    expect(statSync(registry()).mode & 0o077).toBe(0);
    registration.update(about("docs", { folders: [join(folder, "wiki")] }));
    expect(runningInstances(env)[0]?.folders).toEqual([join(folder, "wiki")]);
    registration.remove();
    expect(runningInstances(env)).toEqual([]);
  });

  it("ignores and removes the entry of a process that ended", () => {
    const { pid } = spawnSync("true");
    const instance: Instance = { pid, startMark: "1", ...about("docs") };
    mkdirSync(registry(), { recursive: true });
    writeFileSync(entry(pid), JSON.stringify(instance));
    expect(runningInstances(env)).toEqual([]);
    expect(existsSync(entry(pid))).toBe(false);
  });

  it("ignores a killed process that its parent has not collected", async () => {
    const shell = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    others.push(shell);
    const pid = await new Promise<number>((resolve) =>
      shell.stdout.once("data", (text) => resolve(Number(text))),
    );
    registerPid(pid, about("docs"));
    expect(runningInstances(env)).toHaveLength(1);
    process.kill(pid, "SIGKILL");
    await expect.poll(() => runningInstances(env)).toEqual([]);
  });

  it("ignores the entry of an earlier process with a pid that another one has now", () => {
    register(about("docs"));
    const now = JSON.parse(readFileSync(entry(process.pid), "utf8")) as Instance;
    writeFileSync(entry(process.pid), JSON.stringify({ ...now, startMark: "1" }));
    expect(runningInstances(env)).toEqual([]);
  });

  it("the registry lies below the user's state folders without a runtime folder", () => {
    env = { XDG_STATE_HOME: join(folder, "home") };
    const registration = register(about("docs"));
    expect(readdirSync(join(folder, "home", "kbsync", "instances"))).toHaveLength(1);
    expect(runningInstances(env)).toHaveLength(1);
    registration.remove();
  });

  it("the registry has no entry for a system unit, whose state folder belongs to another user", () => {
    env = { STATE_DIRECTORY: "/var/lib/kbsync", HOME: join(folder, "home") };
    register(about("docs"));
    expect(existsSync(join(folder, "home"))).toBe(false);
  });
});

describe("a command asks", () => {
  it("the only instance from any folder", () => {
    register(about("docs"));
    expect(chosen("elsewhere")).toEqual({ stateDir: join(folder, "docs-state") });
  });

  it("the instance that watches the working folder, with its configuration", () => {
    register(about("docs"));
    const config = join(folder, "wiki.json");
    registerOther(about("wiki", { config }));
    expect(chosen("docs/deep").stateDir).toBe(join(folder, "docs-state"));
    expect(chosen("wiki")).toEqual({ stateDir: join(folder, "wiki-state"), config });
  });

  it("the instance that watches the path on the command line", () => {
    register(about("docs"));
    registerOther(about("wiki"));
    expect(chosen("elsewhere", [join(folder, "wiki", "gone.md")]).stateDir).toBe(join(folder, "wiki-state"));
  });

  it("the instance with the innermost source", () => {
    register(about("docs"));
    registerOther(about("docs/deep", { stateDir: join(folder, "deep-state") }));
    expect(chosen("docs/deep").stateDir).toBe(join(folder, "deep-state"));
    expect(chosen("docs").stateDir).toBe(join(folder, "docs-state"));
  });

  it("a daemon and its service as one", () => {
    register(about("docs", { command: "serve", folders: [] }));
    registerOther(about("docs", { command: "run" }));
    expect(chosen("elsewhere").stateDir).toBe(join(folder, "docs-state"));
  });

  it("a command with options asks what these name, whatever runs", () => {
    register(about("docs"));
    expect(chosen("docs", [], { stateDir: "/x" })).toEqual({ stateDir: "/x" });
  });

  it("the instance with the configuration of the working folder", () => {
    const config = join(folder, "elsewhere", "kbsync.config.json");
    writeFileSync(config, "{}");
    register(about("docs"));
    expect(chosen("elsewhere")).toEqual({});
    registerOther(about("wiki", { config }));
    expect(chosen("elsewhere")).toEqual({ stateDir: join(folder, "wiki-state"), config });
  });

  it("a person to choose, with the complete commands", () => {
    register(about("docs"));
    registerOther(about("wiki", { command: "run" }));
    let thrown: unknown;
    try {
      chosen("elsewhere", ["my file.md"]);
    } catch (error) {
      thrown = error;
    }
    expect(codeOf(thrown)).toBe("instance_unclear");
    const { hint } = thrown as { hint: string };
    expect(hint).toMatch(
      new RegExp(`^    kbsync status 'my file.md' --state-dir ${folder}/docs-state$`, "m"),
    );
    expect(hint).toContain(
      `  kbsync run on ${folder}/wiki:\n    kbsync status 'my file.md' --state-dir ${folder}/wiki-state`,
    );
  });
});
