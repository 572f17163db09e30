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
