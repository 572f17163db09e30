import { execFile, spawnSync } from "node:child_process";
import { KbsyncError } from "../lib/failure.ts";

/** Result of a systemctl run. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs systemctl on one service manager. Throws `no_systemd` if there is no such program, `unit_slow` if it takes too long, and
 * `unit_stopped` if a signal ended it; the requested job then continues.
 */
export type Systemctl = (...args: readonly string[]) => Promise<Ran>;

/** A start waits for READY; the first scan of a large tree can take minutes. */
const TIMEOUT_MS = 600_000;
/** Printing the version needs no service manager. */
const VERSION_TIMEOUT_MS = 5000;
/** Largest output accepted: the properties of one unit. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** systemctl of the whole system, or of this user's own service manager. `program` and `timeoutMs` are given by tests. */
export function openSystemctl(
  isUser: boolean,
  program = "systemctl",
  timeoutMs: number = TIMEOUT_MS,
): Systemctl {
  return async (...args) => {
    const all = [...(isUser ? ["--user"] : []), "--no-ask-password", "--no-pager", ...args];
    return new Promise((resolve, reject) => {
      execFile(program, all, { timeout: timeoutMs, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) => {
        if (error?.killed === true && error.code === null) {
          reject(slow(args, timeoutMs, error));
          return;
        }
        if (typeof error?.signal === "string") {
          reject(brokenOff(args, error.signal, error));
          return;
        }
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
      });
    });
  };
}

function slow(args: readonly string[], timeoutMs: number, cause: unknown): KbsyncError {
  const words = `systemctl ${args.join(" ")}`;
  return new KbsyncError(`${words} was not done within ${timeoutMs / 60_000} min; it goes on`, {
    code: "unit_slow",
    subject: args.at(-1) ?? "",
    hint: "`systemctl status` shows its progress.",
    cause,
  });
}

/** A terminal's Ctrl-C goes to systemctl as well as to this program. */
function brokenOff(args: readonly string[], signal: string, cause: unknown): KbsyncError {
  return new KbsyncError(
    `systemctl ${args.join(" ")} was broken off (${signal}); what it asked for goes on`,
    {
      code: "unit_stopped",
      subject: args.at(-1) ?? "",
      hint: "`systemctl status` shows its progress.",
      cause,
    },
  );
}

/** Version of this machine's systemd; undefined where there is none. */
export function systemdVersion(program = "systemctl"): number | undefined {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: VERSION_TIMEOUT_MS });
  const version = /^systemd (\d+)/.exec(stdout ?? "")?.[1];
  return version === undefined ? undefined : Number(version);
}

/** The units that `systemctl list-units --plain --no-legend` prints: the first word of a line. Pure. */
export function listedUnits(text: string): string[] {
  return text.split("\n").flatMap((line) => /^\S+/.exec(line.trim())?.[0] ?? []);
}

/** Parses the output of `systemctl show`: a property a line, values may hold anything but a line break. Pure. */
export function parseProperties(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}
