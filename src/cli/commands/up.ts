import type { Command } from "commander";
import type { Config } from "../../config/load.ts";
import { type ReachedService, startEmbeddedService } from "../compose/embedded-service.ts";
import { openDaemonBridge } from "../compose/daemon-bridge.ts";
import { consoleAddress, consoleLink, hasConsole } from "../compose/console-link.ts";
import { completeCommand } from "../output/hint.ts";
import { isJournal } from "../output/journal.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { loadSources } from "../state/sources.ts";
import { tierOption, configRequest, type SourceOptions, wholeNumber } from "../output/options.ts";
import { runDaemon } from "./run-daemon.ts";
import { TIER_WORDS, withChosenTier } from "./tier-choice.ts";
import { servicePulse } from "../systemd/service-pulse.ts";
import { makeStateFolder, type StateFolder } from "../state/state-folder.ts";
import { openStopBudget } from "../systemd/stop-budget.ts";
import { openSupervisor } from "../systemd/supervise.ts";

interface UpOptions extends SourceOptions {
  readonly port?: number;
}

/** `kbsync up [DIR…]`: service and daemon in one process. */
export function addUp(program: Command, context: Context): void {
  program
    .command("up")
    .description(
      "make a folder searchable and keep it in sync: runs the service and the daemon in one process",
    )
    .argument("[dir...]", "folders to sync (default: the sources in the configuration)")
    .option("-p, --port <n>", "port of the service; 0 for any free one", wholeNumber(0, 65_535))
    .addOption(tierOption())
    .action(async (dirs: readonly string[], options: UpOptions) => up(context, dirs, options));
}

async function up(context: Context, dirs: readonly string[], given: UpOptions): Promise<void> {
  context.holdHangups?.();
  const options = await withChosenTier(context, dirs, given);
  // A configuration may have no folders: the console and `kbsync add` add them while the program runs.
  const read = (): Config => loadSources(context, dirs, options, ({ file }) => file !== undefined);
  const config = read();
  const state = makeStateFolder(config.stateDir);
  const log = openLog(context.env, context.stderrIsTTY, context.invocation);
  const budget = openStopBudget(context.signal);
  const supervisor = openSupervisor({
    env: context.env,
    log,
    signal: context.signal,
  });
  try {
    const bridge = openDaemonBridge(context.signal);
    // Loaded here, because no other command needs the framework.
    const { daemonHandlers } = await import("../../sync/daemon/control/routes.ts");
    const service = await startEmbeddedService(config, state, log, {
      daemon: daemonHandlers(bridge.operations, bridge.stopping),
      waitUntil: context.signal,
    });
    try {
      context.stdout.write(whereabouts(config, state, service, context));
      context.stdout.write(tierLine(options));
      context.stdout.write(await consoleLine(service, context.env));
      await runDaemon(
        { config, service },
        {
          context,
          command: "up",
          state,
          log,
          supervisor,
          bridge,
          read: () => ({ config: read(), service }),
          edits: { request: configRequest(context, options), areNamed: dirs.length > 0 },
          samples: servicePulse(service),
        },
      );
    } finally {
      await service.close(budget.leftMs());
    }
  } finally {
    supervisor.close();
  }
}

function whereabouts(config: Config, state: StateFolder, service: ReachedService, context: Context): string {
  const lines = [
    ...config.sources.map(({ absolutePath, collection, ownerId }) => [
      "watching",
      `${absolutePath} (${collection}, owner ${ownerId})`,
    ]),
    ...(config.sources.length === 0 ? [["watching", "nothing yet: `kbsync add FOLDER` adds a folder"]] : []),
    ["service", service.apiUrl],
    ["key file", state.keyFile],
    ["state", state.path],
    ["search", completeCommand('kbsync search "your question"', context.invocation)],
  ];
  return `kbsync\n${lines.map(([name, value]) => `  ${(name ?? "").padEnd(10)} ${value}\n`).join("")}`;
}

/** The line that explains a tier that was chosen for new folders; empty if none was. */
function tierLine({ newTier }: SourceOptions): string {
  if (newTier === undefined) return "";
  return `  ${"tier".padEnd(10)} ${newTier}: ${TIER_WORDS[newTier]} (--tier chooses another)\n`;
}

/** How long the printed link is valid: a person reads the lines around it first. */
const PRINTED_LINK_SECONDS = 600;

/** The line that names the console; empty if it is not built. */
async function consoleLine(service: ReachedService, env: NodeJS.ProcessEnv): Promise<string> {
  if (!(await hasConsole(service))) return "";
  // More people can read the journal than may sign in.
  const isUnit = (env["STATE_DIRECTORY"] ?? "") !== "" || isJournal(env, 1);
  const shown = isUnit
    ? `${consoleAddress(service)}/ (\`kbsync key link\` signs in)`
    : `${await consoleLink(service, PRINTED_LINK_SECONDS)} (works once, for 10 minutes)`;
  return `  ${"console".padEnd(10)} ${shown}\n`;
}
