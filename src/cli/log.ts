import { type Logger, pino } from "pino";
import { KbsyncError } from "../lib/failure.ts";
import { lazyModule } from "../lib/lazy-module.ts";
import { KEY_HEADER } from "../wire/routes.ts";

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
 * The logger of a command: to standard error, readable on a terminal and JSON lines elsewhere. `KBSYNC_LOG` sets the
 * level (default `info`). The key is removed wherever it could come in.
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
      pretty()({ destination: 2, sync: true, hideObject: true, translateTime: "HH:MM:ss" }),
    );
  }
  return pino(options, pino.destination({ fd: 2, sync: false }));
}
