import type { Command } from "commander";
import type { Daemon, PassResult } from "../../sync/daemon.ts";
import { distrustLedger } from "../../sync/ledger/restored.ts";
import type { Config } from "../../config/load.ts";
import { FILES_MAX } from "../../wire/daemon.ts";
import { codeOf } from "../../lib/failure.ts";
import { readStatus } from "../../sync/operate/status.ts";
import { reachService } from "../compose/reached-service.ts";
import { openConfiguredDaemon } from "../compose/configured-daemon.ts";
import { openOnCopy } from "../compose/plan-pass.ts";
import type { Context } from "../output/context.ts";
import { EXIT, exitCodeOfPass } from "../output/exit-code.ts";
import {
  answerStop,
  FILES_SHOWN,
  POLL_EVERY_MS,
  openLoggedFailures,
  passSummary,
  troubleLines,
} from "./follow.ts";
import { openLog } from "../terminal/log.ts";
import { nameOtherSources } from "./named-sources.ts";
import { reportOutages } from "../output/outage.ts";
import { tierOption, type SourceOptions, jsonOption } from "../output/options.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { startProgress } from "../terminal/pass-progress.ts";
import { unbroken } from "../terminal/prose.ts";
import { makeStateFolder, type StateFolder } from "../state/state-folder.ts";
import { loadSources } from "../state/sources.ts";

interface SyncOptions extends SourceOptions {
  readonly dryRun?: boolean;
  readonly recover?: boolean;
  readonly json?: boolean;
}

/** `kbsync sync`: one pass. */
export function addSync(program: Command, context: Context): void {
  program
    .command("sync")
    .description("sync once, then exit")
    .argument("[dir...]", "folders to sync (default: the sources in the configuration)")
    .option("-n, --dry-run", "print what would be done, and send nothing")
    .option(
      "--recover",
      "first compare with the documents at the service, for a damaged or outdated ledger (stop the daemon before)",
    )
    .addOption(tierOption())
    .addOption(jsonOption())
    .action(async (dirs: readonly string[], options: SyncOptions) => sync(context, dirs, options));
}

async function sync(context: Context, dirs: readonly string[], options: SyncOptions): Promise<void> {
  const config = loadSources(context, dirs, options, hadSources);
  if (dirs.length === 0)
    nameOtherSources(context, options.dryRun === true ? "sync --dry-run" : "sync", config);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  const service = await reachService(config, state, context.env, log);
  try {
    const logged = openLoggedFailures(log, context);
    const listeners = { levelOfDone: (): "debug" => "debug", onActivity: logged.onActivity };
    if (options.recover === true && options.dryRun !== true) {
      const setAside = distrustLedger(state.path, context.nowMs());
      if (setAside !== undefined)
        context.stderr.write(`kbsync: the previous ledger is saved as ${setAside}\n`);
    }
    const open = (at: StateFolder): Daemon => openConfiguredDaemon(config, at, service, log, listeners);
    const { daemon, close } = await openPass(context, state, options, open);
    const endAnswer = answerStop(context, () => daemon.status());
    try {
      const startMs = context.nowMs();
      const result = await pass(context, daemon, options);
      const { sources, progress } = result.status;
      if (options.json === true) {
        const failures = daemon.files({ limit: Number.MAX_SAFE_INTEGER });
        const skipped = daemon.files({ state: "skipped", limit: FILES_MAX });
        const { planned } = result;
        const outcome = { sources, changes: progress.sent, failures, skipped, ...(planned && { planned }) };
        context.stdout.write(`${JSON.stringify(outcome, undefined, 2)}\n`);
      } else if (result.planned === undefined) {
        context.stdout.write(passSummary(result.status, context.nowMs() - startMs));
        const pending = progress.sent === 0 ? undefined : await daemon.pending(context.signal);
        context.stdout.write(vectorLine(pending?.embed ?? 0));
        const troubled = daemon.files({ limit: FILES_MAX }).filter((file) => !logged.has(file));
        context.stdout.write(troubleLines(troubled, FILES_SHOWN));
      } else {
        context.stdout.write(planLines(result.planned));
      }
      context.exitCode =
        result.planned === undefined ? exitCodeOfPass(sources) : exitCodeOfPlan(result.planned);
    } finally {
      endAnswer();
      await close();
    }
  } finally {
    await service.close();
  }
}

/** Opens the daemon of a pass. A dry run works on a copy of the ledger while another daemon uses the state folder. */
async function openPass(
  context: Pick<Context, "stderr">,
  state: StateFolder,
  { dryRun = false }: SyncOptions,
  open: (state: StateFolder) => Daemon,
): Promise<{ readonly daemon: Daemon; readonly close: () => Promise<void> }> {
  try {
    const daemon = open(state);
    return { daemon, close: () => daemon.close() };
  } catch (error) {
    if (!dryRun || codeOf(error) !== "state_locked") throw error;
  }
  context.stderr.write("kbsync: a daemon is running, which does the following by itself\n");
  return openOnCopy(state, open);
}

/**
 * Whether the last source has left the configuration, or its documents must be deleted: then a pass records that, and deletes
 * what was approved before.
 */
function hadSources({ file, stateDir }: Config): boolean {
  const { sources = [], removed = [] } = readStatus(stateDir, 0) ?? {};
  return (
    removed.some(({ approved }) => approved) || (file !== undefined && sources.length + removed.length > 0)
  );
}

async function pass(context: Context, daemon: Daemon, options: SyncOptions): Promise<PassResult> {
  const stopTelling = reportOutages(context, () => daemon.status().service);
  try {
    return await passWithProgress(context, daemon, options);
  } finally {
    stopTelling();
  }
}

async function passWithProgress(context: Context, daemon: Daemon, options: SyncOptions): Promise<PassResult> {
  const { dryRun = false, json = false } = options;
  // No progress: standard output contains only the plan or the JSON.
  if (dryRun || json) return daemon.syncOnce({ dryRun, signal: context.signal });
  const progress = startProgress(context, context.nowMs(), () => daemon.pending(context.signal));
  const timer = setInterval(() => progress.update(daemon.status(), context.nowMs()), POLL_EVERY_MS);
  try {
    return await daemon.syncOnce({ signal: context.signal });
  } finally {
    clearInterval(timer);
    progress.finish();
  }
}

/** The count of documents that are not found by meaning yet after a pass, for a person. Empty if there are none. */
export function vectorLine(documents: number): string {
  if (documents === 0) return "";
  const what = counted(documents, "document is", "documents are");
  return `${what} not found by meaning yet: the vectors are computed while a service runs (\`kbsync up\` or \`kbsync serve\`)\n`;
}

/** The plan of a halted source says nothing about its files: no script should take that for agreement. */
function exitCodeOfPlan(planned: NonNullable<PassResult["planned"]>): number {
  return planned.some(({ action }) => action === "halt") ? EXIT.held : EXIT.done;
}

/** One line per action, then the sum. */
export function planLines(planned: NonNullable<PassResult["planned"]>): string {
  const sorted = planned.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
  const lines = sorted.map(({ source, action, path, from, reason }) => {
    const origin = from === undefined ? "" : `  (from ${unbroken(from)})`;
    return `${action.padEnd(8)} ${unbroken(path === "" ? source : path)}${origin}${reason === undefined ? "" : `  (${reason})`}\n`;
  });
  const counts = new Map<string, number>();
  for (const { action } of planned) counts.set(action, (counts.get(action) ?? 0) + 1);
  const sum = [...counts].map(([action, count]) => `${thousands(count)} to ${action}`).join(", ");
  return `${lines.join("")}${planned.length === 0 ? "nothing to do" : sum}; nothing was sent\n`;
}
