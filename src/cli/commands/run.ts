import { setFlagsFromString } from "node:v8";
import type { Command } from "commander";
import type { Config } from "../../config/load.ts";
import { codeOf } from "../../lib/failure.ts";
import { findService, runningService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import type { Ground } from "./reload.ts";
import { runDaemon } from "./run-daemon.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { openSupervisor } from "../systemd/supervise.ts";
import { loadSources } from "../state/sources.ts";
import { runInNewContext } from "node:vm";

/** `kbsync run`: the daemon alone, for a service that runs elsewhere. */
export function addRun(program: Command, context: Context): void {
  program
    .command("run")
    .description("run the daemon alone, with a service that runs elsewhere")
    .action(async (options: CommonOptions) => run(context, options));
}

async function run(context: Context, options: CommonOptions): Promise<void> {
  context.holdHangups?.();
  // V8 lets the young generation grow to 128 MB, and the old one to a multiple of the live objects, as long as the machine has
  // memory. Collecting sooner costs a first sync a few seconds and halves the memory of a process that runs for months.
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=20");
  // The last folder may have left the configuration, and its documents must still be deleted.
  const readConfig = (): Config => loadSources(context, [], options, ({ file }) => file !== undefined);
  const config = readConfig();
  const state = makeStateFolder(config.stateDir);
  const service = await runningService(config, state, context.env);
  const sources = config.sources.map(
    ({ absolutePath, collection, ownerId }) =>
      `  watching   ${absolutePath} (${collection}, owner ${ownerId})\n`,
  );
  context.stdout.write(
    `kbsync\n${sources.join("")}  service    ${service.dbUrl}\n  state      ${state.path}\n`,
  );
  const log = openLog(context.env, context.stderrIsTTY, context.invocation);
  const supervisor = openSupervisor({ env: context.env, log, signal: context.signal });
  const read = async (): Promise<Ground> => {
    const fresh = readConfig();
    // An embedded service in another process that is restarting, or does not answer now, is still the same one.
    const found = await findService(config, state, context.env).catch((error: unknown) => {
      if (codeOf(error) === "control_silent") return undefined;
      throw error;
    });
    return { config: fresh, service: found ?? service };
  };
  try {
    await runDaemon(
      { config, service },
      {
        context,
        command: "run",
        state,
        log,
        supervisor,
        read,
        edits: { request: configRequest(context, options), areNamed: false },
        onAgreement: collectAtRest,
      },
    );
  } finally {
    supervisor.close();
  }
}

/** By then the connections of a first pass are closed, and their memory can be freed too. */
const REST_MS = 10_000;

/**
 * Frees the memory of a first pass once the daemon is idle: V8 collects on allocation, and an idle daemon allocates nothing, so
 * it would hold for months what it needed for a minute. Blocks the loop once, for less than a tenth of a second.
 */
function collectAtRest(): void {
  setTimeout(collect, REST_MS).unref();
}

function collect(): void {
  setFlagsFromString("--expose-gc");
  // With the flag set, a new context has the function. Node.js offers no other way after its start.
  const gc: unknown = runInNewContext("gc");
  if (typeof gc === "function") gc({ type: "major", flavor: "last-resort" });
}
