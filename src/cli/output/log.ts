import { type DestinationStream, type Logger, pino } from "pino";
import { KbsyncError } from "../../lib/failure.ts";
import { lazyModule } from "../../lib/lazy-module.ts";
import { KEY_HEADER } from "../../wire/routes.ts";
import { isJournal, PRIORITY, type Priority } from "./journal.ts";
import { visibleLine } from "./visible.ts";

/** For terminals alone. */
const pretty = lazyModule((load) => load("pino-pretty") as typeof import("pino-pretty"));

const LEVELS = ["debug", "info", "warn", "error", "silent"];

/** The level that the environment asks for. Throws `usage` for one that there is not: every command checks it, logging or not. */
export function logLevel(env: NodeJS.ProcessEnv): string {
  const level = env["KBSYNC_LOG"] ?? "info";
  if (LEVELS.includes(level)) return level;
  throw new KbsyncError(`KBSYNC_LOG: expected one of ${LEVELS.join(", ")}, got ${JSON.stringify(level)}`, {
    code: "usage",
  });
}

/**
 * The logger of a command: to standard error, readable on a terminal, JSON lines elsewhere, and JSON lines with the
 * journal's priority before them where standard error is the journal. `KBSYNC_LOG` sets the level (default `info`). The
 * key is removed wherever it could come in.
 */
export function openLog(env: NodeJS.ProcessEnv, isTTY: boolean): Logger {
  const level = logLevel(env);
  const options = {
    level,
    base: null,
    redact: [KEY_HEADER, `*.${KEY_HEADER}`, `req.headers.${KEY_HEADER}`, `*.*.${KEY_HEADER}`],
  };
  if (isTTY) {
    return pino(
      options,
      pretty()({
        destination: 2,
        sync: true,
        hideObject: true,
        translateTime: "HH:MM:ss",
        // A message names files, and a file name may hold what a terminal obeys, or a line that looks like one of the log.
        messageFormat: (line, key) => visibleLine(String(line[key])),
      }),
    );
  }
  const output = pino.destination({ fd: 2, sync: false });
  return pino(options, isJournal(env, 2) ? prioritized(output) : output);
}

/** A stream of log lines, each with its priority in front. */
function prioritized(output: Pick<ReturnType<typeof pino.destination>, "write" | "flush">) {
  const stream: DestinationStream & { lastLevel: number; flush: (done?: () => void) => void } = {
    // Set by pino before each line, for it asks the stream for its wishes by this symbol.
    lastLevel: pino.levels.values["info"] ?? 30,
    write: (line) => void output.write(`<${priorityOf(stream.lastLevel)}>${line}`),
    flush: (done) => output.flush(done),
  };
  return Object.assign(stream, { [pino.symbols.needsMetadataGsym]: true });
}

/** The journal's priority of a level of pino's. */
function priorityOf(level: number): Priority {
  if (level >= 50) return PRIORITY.error;
  if (level >= 40) return PRIORITY.warning;
  return level >= 30 ? PRIORITY.info : PRIORITY.debug;
}
