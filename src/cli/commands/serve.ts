import { once } from "node:events";
import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { startEmbeddedService } from "../compose/embedded-service.ts";
import { LIVE_IN_SERVICE } from "../state/config-change.ts";
import type { Context } from "../output/context.ts";
import { filesOfOneProcess } from "../state/exposure.ts";
import { openLog } from "../terminal/log.ts";
import { serveMetrics, metricsLine } from "../output/monitoring.ts";
import { type CommonOptions, configRequest, wholeNumber } from "../output/options.ts";
import { openReloads, statusWords } from "./reload.ts";
import { servicePulse } from "../systemd/service-pulse.ts";
import { registerInstance } from "../state/instances.ts";
import { makeStateFolder, writeServiceAddress } from "../state/state-folder.ts";
import { openStopBudget } from "../systemd/stop-budget.ts";
import { openSupervisor } from "../systemd/supervise.ts";

interface ServeOptions extends CommonOptions {
  readonly port?: number;
}

/** `kbsync serve`: the service alone. */
export function addServe(program: Command, context: Context): void {
  program
    .command("serve")
    .description("run the knowledge-base service alone")
    .option("-p, --port <n>", "port of the service; 0 for any free one", wholeNumber(0, 65_535))
    .action(async (options: ServeOptions) => serve(context, options));
}

async function serve(context: Context, options: ServeOptions): Promise<void> {
  context.holdHangups?.();
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const log = openLog(context.env, context.stderrIsTTY, context.invocation);
  const alone = filesOfOneProcess(config.service);
  if (alone !== undefined) log.warn({ code: "files_of_one_process" }, alone);
  const budget = openStopBudget(context.signal);
  const supervisor = openSupervisor({ env: context.env, log, signal: context.signal });
  const service = await startEmbeddedService(config, state, log, { waitUntil: context.signal }).catch(
    (error: unknown) => {
      supervisor.close();
      throw error;
    },
  );
  context.stdout.write(
    `kbsync is serving\n  service    ${service.dbUrl}\n  key file   ${state.keyFile}\n  state      ${state.path}\n`,
  );
  const registration = registerInstance(
    context.env,
    { command: "serve", stateDir: state.path, config: config.file ?? null, folders: [] },
    (words) => log.warn(words),
  );
  try {
    const monitoring = await serveMetrics(config, service.metrics, () =>
      context.signal.aborted ? "shutting down" : undefined,
    );
    context.stdout.write(metricsLine(monitoring));
    const reloads = openReloads({
      context,
      log,
      supervisor,
      ground: { config, service },
      read: () => ({ config: loadConfig(configRequest(context, options)), service }),
      live: LIVE_IN_SERVICE,
      onRead: (notApplied) => writeServiceAddress(state, service.dbUrl, notApplied),
    });
    supervisor.watch({
      isReady: () => true,
      words: () => statusWords(reloads.notApplied(), `serving at ${service.dbUrl}`),
      samples: servicePulse(service),
    });
    if (!context.signal.aborted) await once(context.signal, "abort");
    reloads.stop();
    await monitoring?.close();
  } finally {
    registration.remove();
    await service.close(budget.leftMs());
    supervisor.close();
  }
}
