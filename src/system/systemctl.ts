import { execFile } from "node:child_process";
import { KbsyncError } from "../lib/failure.ts";

/** What a run of systemctl came to. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs systemctl on one service manager. Throws `no_systemd` where there is no such program. */
export type Systemctl = (...args: readonly string[]) => Promise<Ran>;

/** A start waits for READY, which a first look at a large tree may take minutes to bring. */
const TIMEOUT_MS = 600_000;
/** Longest output that is taken: properties of one unit. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** systemctl of the whole system, or of this user's own service manager. */
export function openSystemctl(isUser: boolean): Systemctl {
  return async (...args) => {
    const all = [...(isUser ? ["--user"] : []), "--no-ask-password", "--no-pager", ...args];
    return new Promise((resolve, reject) => {
      execFile(
        "systemctl",
        all,
        { timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX },
        (error, stdout, stderr) => {
          if (error !== null && typeof error.code !== "number") {
            reject(
              new KbsyncError(`systemctl cannot be run: ${error.message}`, {
                code: "no_systemd",
                hint: "`--print` shows the unit without installing it.",
                cause: error,
              }),
            );
            return;
          }
          resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
        },
      );
    });
  };
}

/** What `systemctl show` prints: a property a line, values may hold anything but a line break. Pure. */
export function parseProperties(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}
