import { readFileSync } from "node:fs";
import { codeOf } from "./failure.ts";

/** Whether a process with this pid runs, under any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** Whether a process is stopped, as by SIGSTOP (proc_pid_stat(5)). A system without /proc does not say. */
export function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name before it may contain anything.
    return /^ [Tt] /.test(stat.slice(stat.lastIndexOf(")") + 1));
  } catch {
    return false;
  }
}
