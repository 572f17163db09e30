import { readdirSync, readFileSync } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import { counted, thousands } from "../output/progress.ts";
import type { Check, Checked } from "./check.ts";
import { seeFolders } from "./folders.ts";

/** inotify limits of one user, and their use. */
export interface Inotify {
  readonly watchesMax: number;
  readonly instancesMax: number;
  /** Sum over all readable processes of this user. */
  readonly watches: number;
  readonly instances: number;
}

/** Share of the limit above which other programs (editors, desktops) may find no watches left. */
const SHARE_HIGH = 0.8;
/** Fewest free instances: one for the watcher, the others for programs that start later. */
const INSTANCES_FREE_MIN = 8;
/** File of the setting that survives a reboot. */
const SYSCTL_FILE = "/etc/sysctl.d/90-kbsync.conf";

/** Checks that the limit of inotify watches suffices for the folders of all sources. */
export const watchesCheck: Check = {
  name: "watches",
  run: async ({ config, quick, signal, daemon }) => {
    if (process.platform !== "linux") return { seen: "no limit on this system", findings: [] };
    if (quick) return { seen: "left out (--quick)", findings: [] };
    let folders = 0;
    for (const source of config.sources) folders += (await seeFolders(source, signal)).folders;
    const inotify = readInotify();
    // A container may hide the limits. The daemon reports a limit that it reaches.
    if (inotify === undefined)
      return { seen: `${counted(folders, "folder")}; the system does not show its limit`, findings: [] };
    const running = await daemon().catch(() => undefined);
    // The watches of a running daemon are already in use.
    return judgeWatches(inotify, folders, running !== undefined);
  },
};

/** Judges the limits for a number of folders to watch. Pure. */
export function judgeWatches(inotify: Inotify, folders: number, isWatching: boolean): Checked {
  const { watchesMax, watches, instancesMax, instances } = inotify;
  const needed = isWatching ? Math.max(watches, folders) : watches + folders;
  const findings: Finding[] = [];
  if (needed > watchesMax * SHARE_HIGH) {
    const isShort = needed > watchesMax;
    findings.push({
      check: "watch-limit",
      level: isShort ? "failure" : "warning",
      subject: "fs.inotify.max_user_watches",
      message: isShort
        ? `the folders need ${thousands(folders)} inotify watches and other programs of this user have ${thousands(needed - folders)}, but the limit is ${thousands(watchesMax)}: some changes would be found by a scan only, every 15 s`
        : `${thousands(needed)} of ${thousands(watchesMax)} inotify watches are needed: a few more folders, or another program, may find none left`,
      remedy: sysctlLine("max_user_watches", roomyLimit(needed)),
    });
  }
  if (!isWatching && instances + INSTANCES_FREE_MIN > instancesMax) {
    findings.push({
      check: "watch-instances",
      level: instances >= instancesMax ? "failure" : "warning",
      subject: "fs.inotify.max_user_instances",
      message: `programs of this user have ${thousands(instances)} of ${thousands(instancesMax)} inotify instances`,
      remedy: sysctlLine("max_user_instances", Math.max(512, 2 * instancesMax)),
    });
  }
  return { seen: `${thousands(folders)} folders, limit ${thousands(watchesMax)}`, findings };
}

/** Returns the command that raises a limit permanently. */
function sysctlLine(name: string, value: number): string {
  return `echo fs.inotify.${name}=${value} | sudo tee -a ${SYSCTL_FILE} && sudo sysctl -p ${SYSCTL_FILE}`;
}

/** Returns twice the need as a power of two. A watch takes a kilobyte of kernel memory, and only while in use. */
function roomyLimit(needed: number): number {
  return Math.max(524_288, 2 ** Math.ceil(Math.log2(2 * needed)));
}

/** Reads limits and use from `/proc`. Undefined if it lacks the limits. */
export function readInotify(proc = "/proc"): Inotify | undefined {
  const limit = (name: string): number => Number(readFileSync(`${proc}/sys/fs/inotify/${name}`, "utf8"));
  let limits: Pick<Inotify, "watchesMax" | "instancesMax">;
  try {
    limits = { watchesMax: limit("max_user_watches"), instancesMax: limit("max_user_instances") };
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "EACCES") return undefined;
    throw error;
  }
  let watches = 0;
  let instances = 0;
  for (const pid of readdirSync(proc).filter((name) => /^\d+$/.test(name))) {
    for (const info of descriptorsOf(`${proc}/${pid}`)) {
      const own = info.split("\n").filter((line) => line.startsWith("inotify ")).length;
      watches += own;
      if (own > 0) instances += 1;
    }
  }
  return { ...limits, watches, instances };
}

/** Returns the descriptor information of a process of this user. */
function descriptorsOf(folder: string): string[] {
  try {
    const status = readFileSync(`${folder}/status`, "utf8");
    if (Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) !== process.getuid?.()) return [];
    return readdirSync(`${folder}/fdinfo`).flatMap((fd) => {
      try {
        return [readFileSync(`${folder}/fdinfo/${fd}`, "utf8")];
      } catch {
        return []; // closed meanwhile
      }
    });
  } catch {
    return []; // ended meanwhile, or not readable
  }
}
