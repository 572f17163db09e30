import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../lib/durable-file.ts";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { isAlive } from "../../lib/process-alive.ts";

const Instance = z.object({
  pid: z.int().min(1),
  /** Distinguishes the process from a later one with the same pid; empty if the system does not report it. */
  startMark: z.string(),
  command: z.enum(["up", "run", "serve"]),
  stateDir: z.string(),
  /** The configuration file; null: none. */
  config: z.string().nullable(),
  /** The folders that it watches. */
  folders: z.array(z.string()),
});

/** A running `kbsync up`, `run` or `serve`, as it registered itself. */
export type Instance = z.infer<typeof Instance>;
/** The entry of an instance. */
export type InstanceFacts = Pick<Instance, "command" | "stateDir" | "config" | "folders">;

/** The entry of this process. */
export interface Registration {
  update(facts: InstanceFacts): void;
  remove(): void;
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Registers this process, so that other commands of the same user find it. Calls `onProblem` if that fails; the instance runs
 * nevertheless. A system unit does not register, because its state folder belongs to another user.
 */
export function registerInstance(
  env: Env,
  facts: InstanceFacts,
  onProblem: (words: string) => void,
): Registration {
  const folder = registryOf(env);
  if (folder === undefined) return { update: () => undefined, remove: () => undefined };
  const file = join(folder, `${process.pid}.json`);
  const write = (now: InstanceFacts): void => {
    const entry: Instance = { pid: process.pid, startMark: startMarkOf(process.pid), ...now };
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeDurably(file, `${JSON.stringify(entry)}\n`);
    } catch (error) {
      onProblem(`other commands need --state-dir to find this instance: ${messageOf(error)}`);
    }
  };
  write(facts);
  return { update: write, remove: () => rmSync(file, { force: true }) };
}

/** Returns the running instances of this user by pid, and removes the entries of processes that ended without removing them. */
export function runningInstances(env: Env): readonly Instance[] {
  const folder = registryOf(env);
  if (folder === undefined) return [];
  return namesIn(folder).flatMap((name) => {
    const instance = readInstance(join(folder, name));
    if (instance !== undefined && isRunning(instance)) return [instance];
    rmSync(join(folder, name), { force: true });
    return [];
  });
}

/**
 * Returns the instances that a command in the folder `cwd` can mean: those that watch it or one of the `paths`, the innermost
 * source first; else all of them. If there are several, a person has to choose.
 */
export function matchingInstances(
  instances: readonly Instance[],
  cwd: string,
  paths: readonly string[],
): readonly Instance[] {
  const around = [cwd, ...paths.map((path) => resolve(cwd, path))].map(realPath);
  const depths = instances.map(({ folders }) =>
    Math.max(
      0,
      ...folders.map(realPath).map((folder) => {
        const isAround = around.some((path) => pathBelow(folder, path) !== undefined);
        return isAround ? folder.length : 0;
      }),
    ),
  );
  const deepest = Math.max(0, ...depths);
  return instances.filter((_, index) => depths[index] === deepest);
}

/** The folder with an entry per instance; undefined: this environment has none. */
function registryOf(env: Env): string | undefined {
  const { XDG_RUNTIME_DIR: runtime, XDG_STATE_HOME: state, HOME: home, STATE_DIRECTORY: unit } = env;
  if (isAbsolute(runtime)) return join(runtime, "kbsync");
  if ((unit ?? "") !== "") return undefined;
  if (isAbsolute(state)) return join(state, "kbsync", "instances");
  return isAbsolute(home) ? join(home, ".local", "state", "kbsync", "instances") : undefined;
}

function isAbsolute(path: string | undefined): path is string {
  return path?.startsWith("/") === true;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+\.json$/.test(name))
      .toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  } catch (error) {
    // Without a readable folder no instance can be found, and commands work as if none ran.
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(codeOf(error) ?? "")) return [];
    throw error;
  }
}

function readInstance(file: string): Instance | undefined {
  try {
    return Instance.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined; // of another version, or removed just now
  }
}

function isRunning({ pid, startMark }: Instance): boolean {
  return isAlive(pid) && startMarkOf(pid) === startMark;
}

/** The time at which a process started, in ticks since the boot (proc(5)); empty without /proc, and once it has ended. */
function startMarkOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the name in parentheses, which may contain spaces; the state is field 3, the start field 22.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A killed process remains a zombie until its parent waits for it.
    return state === "Z" ? "" : (fields[18] ?? "");
  } catch {
    return "";
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // a missing folder, or a word that is not a path
  }
}
