import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { repositoryRoot } from "../e2e/program.ts";

/** What a command in the container came to. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A container with a systemd of its own, over this machine's files; whatever it writes is gone with it. */
export interface Container {
  /** Runs a program to its end, as root. */
  run(program: string, ...args: readonly string[]): Ran;
  /** The same, as a shell script; throws where it fails. */
  sh(script: string): string;
  /** Runs kbsync as it is installed there. */
  kbsync(...args: readonly string[]): Ran;
  /** What systemd knows of a unit. */
  show(unit: string): Readonly<Record<string, string>>;
  end(): Promise<void>;
}

/** Where the repository lies in it. */
export const INSTALLED = "/opt/kbsync";
/** The Node.js that came with it. */
export const NODE = `${INSTALLED}/node_modules/node/bin/node`;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Longest wait for anything, in milliseconds; far more than it takes, for machines that do much else. */
const WAIT_MS = 240_000;
/** A check takes a processor for 20 ms, which the program that is waited for could use. */
const POLL_MS = 200;

/**
 * Mounts and boots in a mount namespace of its own, over a small disk in memory: systemd never sees a folder of this
 * machine that it could empty, and nothing is left mounted when the process ends. The program is copied: a build that runs
 * meanwhile would exchange it under the test.
 */
const BOOT = `
set -e
mount -t tmpfs kbsync-test "$1"
mkdir "$1/up" "$1/work" "$1/root" "$1/program-up" "$1/program-work"
mount -t overlay kbsync-test -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
mkdir -p "$1/root${INSTALLED}"
cp -r "$2/dist" "$1/program-up/"
mount -t overlay kbsync-test -o "lowerdir=$2,upperdir=$1/program-up,workdir=$1/program-work" "$1/root${INSTALLED}"
exec setpriv --pdeathsig KILL systemd-nspawn --quiet --register=no --keep-unit --link-journal=no --private-network --console=pipe \\
  --machine=kbsync-test -b -D "$1/root"
`;

/** Why no container can be booted here, in words; undefined: one can. */
export function whyNoContainer(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can boot a container";
  if (spawnSync("systemd-nspawn", ["--version"]).error !== undefined)
    return "there is no systemd-nspawn (Debian: systemd-container)";
  const folder = mkdtempSync(join(tmpdir(), "kbsync-mount-"));
  const script = `mount -t tmpfs kbsync-test "$0" && mkdir "$0/a" "$0/b" "$0/c" &&
    mount -t overlay kbsync-test -o "lowerdir=/,upperdir=$0/a,workdir=$0/b" "$0/c"`;
  const tried = spawnSync("unshare", ["-m", "--propagation", "private", "sh", "-c", script, folder]);
  rmSync(folder, { recursive: true, force: true });
  return tried.status === 0 ? undefined : "no overlay can be mounted here";
}

/** Boots one, and waits until it is up. Throws what it said where it does not come up. */
export async function bootContainer(): Promise<Container> {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-container-"));
  const args = ["-m", "--propagation", "private", "sh", "-c", BOOT, "boot", folder, repositoryRoot];
  const nspawn = spawn("unshare", args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  nspawn.stdout.on("data", (data: Buffer) => (output += data.toString()));
  nspawn.stderr.on("data", (data: Buffer) => (output += data.toString()));
  const init = await until("the container's first process", () => {
    if (nspawn.exitCode !== null) throw new Error(`the container ended with ${nspawn.exitCode}: ${output}`);
    return firstChild(nspawn);
  });
  const enter = ["-t", String(init), "-m", "-u", "-i", "-n", "-p", "-r", "-w"];
  const run = (program: string, ...rest: readonly string[]): Ran => {
    const { status, stdout, stderr } = spawnSync("nsenter", [...enter, program, ...rest], {
      env: { PATH, LANG: "C.UTF-8", HOME: "/root" },
      encoding: "utf8",
      timeout: WAIT_MS,
    });
    return { code: status ?? -1, stdout, stderr };
  };
  const container: Container = {
    run,
    sh: (script) => {
      const { code, stdout, stderr } = run("sh", "-ec", script);
      if (code !== 0) throw new Error(`${script}: ${code}\n${stdout}${stderr}`);
      return stdout;
    },
    kbsync: (...rest) => run(NODE, `${INSTALLED}/dist/main.js`, ...rest),
    show: (unit) =>
      Object.fromEntries(
        run("systemctl", "show", unit)
          .stdout.split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      ),
    end: async () => {
      const ended = once(nspawn, "close");
      // As a machine that loses its power: nothing in it survives.
      execFileSync("kill", ["-KILL", String(init)]);
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await until("the container to be up", () =>
    ["running", "degraded"].includes(run("systemctl", "is-system-running").stdout.trim()) ? true : undefined,
  );
  return container;
}

/** Resolves with what `look` gives as soon as that is something. */
export async function until<T>(what: string, look: () => T | undefined): Promise<T> {
  const endMs = Date.now() + WAIT_MS;
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (Date.now() > endMs) throw new Error(`waited too long for ${what}`);
    await sleep(POLL_MS);
  }
}

/** The first process below another one: in the container it is number 1. */
function firstChild({ pid }: ChildProcess): number | undefined {
  if (pid === undefined) return undefined;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [child] = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" ");
    if (child !== undefined && child !== "" && commandOf(child) === "systemd") return Number(child);
  }
  return undefined;
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return ""; // It has ended meanwhile.
  }
}
