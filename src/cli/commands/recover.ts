import type { Command } from "commander";
import { recoverLedger, type RecoverReport } from "../../sync/daemon.ts";
import { printJson } from "../state/ask.ts";
import { reachService } from "../compose/reached-service.ts";
import { daemonOptions } from "../compose/configured-daemon.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { syncedSources } from "./named-sources.ts";
import type { CommonOptions } from "../output/options.ts";
import { thousands } from "../output/progress.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { planLines } from "./sync.ts";

interface RecoverCommandOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Surplus resources that are named. */
const NAMED = 10;

/** `kbsync recover`: a new ledger from what the service holds. */
export function addRecover(program: Command, context: Context): void {
  program
    .command("recover")
    .description(
      "rebuild a lost, damaged or outdated ledger from the documents at the service (stop the daemon first)",
    )
    .argument("[dir]", "folder that was synced (default: the sources in the configuration)")
    .option(
      "-n, --dry-run",
      "show which documents would be recognised and what would be sent, and change nothing",
    )
    .option("--json", "print the result as JSON")
    .action(async (dir: string | undefined, options: RecoverCommandOptions) =>
      recover(context, dir, options),
    );
}

async function recover(
  context: Context,
  dir: string | undefined,
  options: RecoverCommandOptions,
): Promise<void> {
  const config = syncedSources(context, "recover", dir, options, undefined);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  const service = await reachService(config, state, context.env, log);
  try {
    const report = await recoverLedger(
      daemonOptions(config, state, service, log, { levelOfDone: () => "debug" }),
      { dryRun: options.dryRun === true, signal: context.signal, nowMs: context.nowMs },
    );
    if (options.json === true) printJson(context, report);
    else context.stdout.write(recoverText(report));
  } finally {
    await service.close();
  }
}

/** The result for a person. */
export function recoverText({ setAside, sources, planned }: RecoverReport): string {
  const lines = setAside === null ? [] : [`the previous ledger is saved as ${setAside}`];
  for (const { source, listed, adopted, differing, missing, lost, surplus } of sources) {
    lines.push(`source   ${source}`);
    if (!listed) {
      lines.push("         nothing adopted yet: the service sends the collection's id with the first file");
      continue;
    }
    const counts = [`${thousands(adopted)} adopted as they are`];
    if (differing > 0) counts.push(`${thousands(differing)} adopted, to be sent`);
    if (missing > 0)
      counts.push(`${thousands(missing)} no longer there, ${lost === null ? "to be sent" : "held"}`);
    if (surplus.count > 0) counts.push(`${thousands(surplus.count)} that match no file, left unchanged`);
    lines.push(`         ${counts.join(", ")}`);
    if (lost !== null) lines.push(`         ${lost} \`kbsync approve\` sends them again.`);
    for (const { docId, title } of surplus.first.slice(0, NAMED))
      lines.push(`         left     ${title}  (${docId})`);
  }
  return `${lines.join("\n")}\n${planned.length === 0 ? "" : `the next sync:\n${planLines(planned)}`}`;
}
