import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Logger } from "pino";
import { type Config, loadConfig } from "../config/load.ts";
import { KbsyncError, messageOf } from "../lib/failure.ts";
import { handleWith } from "../sync/control/handle.ts";
import { openControl, type Control } from "../sync/control/server.ts";
import type { Daemon } from "../sync/daemon.ts";
import { openConfiguredDaemon, type ReachedService, startEmbeddedService } from "./compose.ts";
import type { Context } from "./context.ts";
import { followDaemon } from "./follow.ts";
import { openLog } from "./log.ts";
import { ledgerFolders } from "./ledger-folders.ts";
import { type CommonOptions, configRequest, wholeNumber } from "./options.ts";
import { makeStateFolder, type StateFolder } from "./state-folder.ts";
import { programVersion } from "./version.ts";

interface UpOptions extends CommonOptions {
  readonly port?: number;
}

/** `kbsync up [DIR]`: service and daemon in one process. */
export function addUp(program: Command, context: Context): void {
  program
    .command("up")
    .description("run service and daemon in one process: the folder becomes a knowledge base and stays one")
    .argument("[dir]", "folder to watch (default: the sources of the configuration)")
    .option(
      "-p, --port <n>",
      "port of the service on 127.0.0.1; 0 takes any free one",
      wholeNumber(0, 65_535),
    )
    .action(async (dir: string | undefined, options: UpOptions) => up(context, dir, options));
}

async function up(context: Context, dir: string | undefined, options: UpOptions): Promise<void> {
  const config = loadSources(context, dir, options);
  const state = makeStateFolder(config.stateDir);
  const log = openLog(context.env, context.stderrIsTTY);
  const service = await startEmbeddedService(config, state, log);
  try {
    context.stdout.write(whereabouts(config, state, service, context));
    await runDaemon(context, config, state, service, log);
  } finally {
    await service.close();
  }
}

/** Runs the daemon until a signal comes, telling how it goes. `onAgreement` is called when the first pass is done. */
export async function runDaemon(
  context: Context,
  config: Config,
  state: StateFolder,
  service: ReachedService,
  log: Logger,
  onAgreement: () => void = () => undefined,
): Promise<void> {
  // The first pass is told by the progress and its summary, thousands of lines would hide both; what comes then is news.
  let levelOfDone: "debug" | "info" = "debug";
  const daemon = openConfiguredDaemon(config, state, service, log, () => levelOfDone);
  const following = new AbortController();
  const follow = async (): Promise<void> => {
    await followDaemon(daemon, context, AbortSignal.any([context.signal, following.signal]));
    levelOfDone = "info";
    onAgreement();
  };
  const control = await serveControl(context, state, daemon, log);
  // Before the daemon lets go of the state folder: whoever starts next on it opens a socket of its own.
  const closeControl = (): void => void control?.close();
  context.signal.addEventListener("abort", closeControl, { once: true });
  const followed = follow();
  try {
    await daemon.run({ signal: context.signal });
    log.debug("stopped");
  } finally {
    context.signal.removeEventListener("abort", closeControl);
    await control?.close();
    following.abort();
    await followed;
  }
}

/** The socket for the other commands. A daemon without one syncs all the same, and says what it lacks. */
async function serveControl(
  context: Context,
  state: StateFolder,
  daemon: Daemon,
  log: Logger,
): Promise<Control | undefined> {
  const version = programVersion();
  try {
    return await openControl({
      stateDir: state.path,
      version,
      env: context.env,
      handle: handleWith(daemon, { version, startedMs: context.nowMs() }),
      onElsewhere: (path, reason) =>
        log.warn(`the control socket is ${path}, not in the state folder: ${reason}`),
    });
  } catch (error) {
    log.warn(`no control socket, so that no command reaches this daemon: ${messageOf(error)}`);
    return undefined;
  }
}

/**
 * Loads the configuration for a command that works on sources. A folder named on the command line must be there: a
 * missing one is a slip of the keyboard, while a configured one may be a disk that is not mounted yet. `mayBeEmpty` says
 * whether a configuration without sources will do (default: it will not).
 */
export function loadSources(
  context: Context,
  dir: string | undefined,
  options: UpOptions,
  mayBeEmpty: (config: Config) => boolean = () => false,
): Config {
  const config = loadConfig(configRequest(context, options, dir));
  if (config.sources.length === 0 && !mayBeEmpty(config)) {
    const known = ledgerFolders(config.stateDir);
    const which = known.length === 0 ? "" : ` This state folder was last used with ${known.join(", ")}.`;
    throw new KbsyncError("there is no folder to watch", {
      code: "usage",
      hint: `Name one on the command line, or list it under sources in kbsync.config.json.${which}`,
    });
  }
  if (
    dir !== undefined &&
    statSync(resolve(context.cwd, dir), { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    throw new KbsyncError(`${dir} is no folder`, { code: "source_unusable", subject: dir });
  }
  return config;
}

function whereabouts(config: Config, state: StateFolder, service: ReachedService, context: Context): string {
  const lines = [
    ...config.sources.map(({ absolutePath, collection, ownerId }) => [
      "watching",
      `${absolutePath} (${collection}, owner ${ownerId})`,
    ]),
    ["service", service.apiUrl],
    ["key file", state.keyFile],
    ["state", state.path],
    ["search", searchCommand(context.env)],
  ];
  return `kbsync\n${lines.map(([name, value]) => `  ${(name ?? "").padEnd(10)} ${value}\n`).join("")}`;
}

/** How the person who started this would type a search: through npm in a clone, else by name. */
function searchCommand(env: NodeJS.ProcessEnv): string {
  const fromClone = env["npm_lifecycle_event"] === "start";
  return `${fromClone ? "npm run -s kbsync --" : "kbsync"} search "your question"`;
}
