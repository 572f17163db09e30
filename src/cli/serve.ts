import { once } from "node:events";
import type { Command } from "commander";
import { loadConfig } from "../config/load.ts";
import { startEmbeddedService } from "./compose.ts";
import type { Context } from "./context.ts";
import { openLog } from "./log.ts";
import { type CommonOptions, configRequest, wholeNumber } from "./options.ts";
import { makeStateFolder } from "./state-folder.ts";

interface ServeOptions extends CommonOptions {
  readonly port?: number;
}

/** `kbsync serve`: the service alone. */
export function addServe(program: Command, context: Context): void {
  program
    .command("serve")
    .description("run the knowledge-base service alone")
    .option("-p, --port <n>", "port on 127.0.0.1; 0 takes any free one", wholeNumber(0, 65_535))
    .action(async (options: ServeOptions) => serve(context, options));
}

async function serve(context: Context, options: ServeOptions): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const service = await startEmbeddedService(config, state, openLog(context.env, context.stderrIsTTY));
  context.stdout.write(
    `kbsync is serving\n  service    ${service.dbUrl}\n  key file   ${state.keyFile}\n  state      ${state.path}\n`,
  );
  if (!context.signal.aborted) await once(context.signal, "abort");
  await service.close();
}
