import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { runningService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { consoleLink, hasConsole } from "../compose/console-link.ts";
import { makeStateFolder } from "../state/state-folder.ts";

interface ConsoleOptions extends CommonOptions {
  readonly json?: boolean;
}

/** How long the link signs in: as long as it takes to open it at once. */
const LINK_SECONDS = 60;

/** `kbsync console`: a link that signs in to the web console of the running service. */
export function addConsole(program: Command, context: Context): void {
  program
    .command("console")
    .description("print a link that signs in to the web console, once and within a minute")
    .option("--json", "print the link as JSON")
    .action(async (options: ConsoleOptions) => {
      const link = await signInLink(context, options);
      context.stdout.write(options.json === true ? `${JSON.stringify({ link })}\n` : `${link}\n`);
    });
}

async function signInLink(context: Context, options: ConsoleOptions): Promise<string> {
  const config = loadConfig(configRequest(context, options));
  if (!("embedded" in config.service)) {
    throw new KbsyncError("the configuration names a hosted service, which has no console of kbsync", {
      code: "usage",
    });
  }
  const state = makeStateFolder(config.stateDir);
  const service = await runningService(config, state, context.env);
  if (!(await hasConsole(service))) {
    throw new KbsyncError("the running service has no console: it was started before the console was built", {
      code: "usage",
      subject: service.apiUrl,
      hint: "`npm run build` builds it; then restart the service.",
    });
  }
  return consoleLink(service, LINK_SECONDS);
}
