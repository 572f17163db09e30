import { resolve } from "node:path";
import type { Config } from "../../config/load.ts";
import { proveAgreement } from "../../sync/operator/proof.ts";
import { nothingSynced } from "../state/ask.ts";
import { daemonOptions, reachService } from "../compose/compose.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../output/log.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { programVersion } from "../output/version.ts";

/** Prints the proof of the sources, or the one of a folder, as JSON, a line a file, as it is made. Returns whether all agree. */
export async function printProof(
  context: Context,
  folder: string | undefined,
  config: Config,
): Promise<boolean> {
  const path = folder === undefined ? undefined : resolve(context.cwd, folder);
  const sources = config.sources.filter(({ absolutePath }) => path === undefined || absolutePath === path);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY);
  const service = await reachService(config, state, context.env, log);
  const { stdout, signal } = context;
  let separator = "";
  try {
    const at = new Date(context.nowMs()).toISOString();
    const head = { at, version: programVersion(), service: service.dbUrl };
    let begun = false;
    const agrees = await proveAgreement(
      { ...daemonOptions(config, state, service, log, () => "debug"), sources, signal },
      {
        begin: (source) => {
          if (begun) stdout.write(",\n");
          else stdout.write(`${JSON.stringify(head).slice(0, -1)},"sources":[\n`);
          begun = true;
          separator = "\n";
          stdout.write(`{"path":${JSON.stringify(source)},"files":[`);
        },
        file: (file) => {
          stdout.write(`${separator}${JSON.stringify(file)}`);
          separator = ",\n";
        },
        end: (sums) => stdout.write(`\n],"sums":${JSON.stringify(sums)}}`),
      },
    );
    if (agrees === undefined) throw nothingSynced(state.path);
    if (!begun) stdout.write(`${JSON.stringify(head).slice(0, -1)},"sources":[`);
    stdout.write(`\n],"verdict":${JSON.stringify(agrees ? "agrees" : "differs")}}\n`);
    return agrees;
  } finally {
    await service.close();
  }
}
