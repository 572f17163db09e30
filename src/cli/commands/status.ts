import type { Command } from "commander";
import { FILES_MAX } from "../../wire/daemon.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { LiveStatus, PaceState, RemovedStatus, SourceStatus } from "../../wire/daemon-status.ts";
import { codeOf } from "../../lib/failure.ts";
import type { ListedFile, ListedState } from "../../wire/daemon-files.ts";
import { readStatus } from "../../sync/operator/status.ts";
import { outageWords } from "../../sync/remote/pacer.ts";
import { badNews } from "../output/standing-words.ts";
import { localTime, counted, duration, thousands } from "../output/progress.ts";
import { nothingSynced, type Operator, openOperator } from "../state/ask.ts";
import { findService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import {
  FILES_SHOWN,
  holdLine,
  leftOutLine,
  warningLines,
  removedLine,
  PAUSED_WORDS,
  troubleLines,
  unreadableLine,
} from "./follow.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { LISTED_STATES, listedText, listFiles } from "./listed-files.ts";
import { readServiceAddress, type StateFolder, stateFolder } from "../state/state-folder.ts";

interface StatusOptions extends CommonOptions, Partial<Record<ListedState, boolean>> {
  readonly json?: boolean;
}

/** The output of `kbsync status --json`. */
interface Status {
  readonly stateDir: string;
  /** The daemon that runs on the state folder. Null: none runs, and the other figures are those of the last pass. */
  readonly daemon: Omit<LiveStatus, "removed" | "sources"> | null;
  readonly service: {
    readonly address: string | null;
    /** Null: a hosted service is not asked, because that would need its key and the network. */
    readonly running: boolean | null;
    /** Changes of the configuration that `kbsync serve` has not applied, each with the reason. */
    readonly notApplied: readonly string[];
  };
  readonly sources: readonly SourceStatus[];
  /** Folders of the configuration that no pass has seen yet. */
  readonly unsynced: readonly { readonly path: string; readonly tier: Tier; readonly ownerId: string }[];
  readonly removed: readonly RemovedStatus[];
  readonly failures: readonly ListedFile[];
  readonly skipped: readonly ListedFile[];
}

/**
 * `kbsync status [PATH]`: how far folders and knowledge base agree, by the running daemon, or else by the ledger. With a path or a
 * state, it lists the files that are not searchable as they are on disk instead, each with its reason.
 */
export function addStatus(program: Command, context: Context): void {
  program
    .command("status")
    .description(
      "show whether the knowledge base is up to date; with a path or a state, list the files that are not, each with the reason",
    )
    .argument("[path]", "a file, or a folder with all below it")
    .option("--failed", "list files that could not be read, or that the service refused")
    .option("--waiting", "list files that will be tried again")
    .option("--held", "list deletes that wait for kbsync approve")
    .option("--skipped", "list files that are left out, with the rule")
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: StatusOptions) => status(context, path, options));
}

async function status(context: Context, path: string | undefined, options: StatusOptions): Promise<void> {
  const operator = openOperator(context, options);
  const chosen = LISTED_STATES.filter((state) => options[state] === true);
  if (path === undefined && chosen.length === 0) {
    print(context, options, await statusOf(context, operator), statusText);
    return;
  }
  const states = chosen.length === 0 ? LISTED_STATES : chosen;
  const files = await listFiles(operator, path, states);
  print(context, options, { files }, (now) => listedText(now.files, states));
  if (files.length >= FILES_MAX)
    context.stderr.write(`kbsync: at most ${thousands(FILES_MAX)} of each kind are listed; name a folder\n`);
}

function print<T>(context: Context, { json }: StatusOptions, now: T, text: (now: T) => string): void {
  context.stdout.write(json === true ? `${JSON.stringify(now, undefined, 2)}\n` : text(now));
}

async function statusOf(context: Context, operator: Operator): Promise<Status> {
  const { config } = operator;
  const state = stateFolder(config.stateDir);
  const { daemon, sources: live } = await askLive(operator);
  const ledger = readStatus(state.path, FILES_MAX);
  const sources = live ?? ledger?.sources ?? [];
  const synced = new Set(sources.map(({ path }) => path));
  return {
    stateDir: state.path,
    daemon,
    service: await serviceLine(config, state, context),
    sources,
    unsynced: config.sources
      .filter(({ absolutePath }) => !synced.has(absolutePath))
      .map(({ absolutePath: path, collection: tier, ownerId }) => ({ path, tier, ownerId })),
    removed: ledger?.removed ?? [],
    failures: ledger?.troubled ?? [],
    skipped: ledger?.skipped ?? [],
  };
}

/** The answer of the daemon. One that is starting or ending counts as none. */
async function askLive(
  operator: Operator,
): Promise<{ daemon: Status["daemon"]; sources?: readonly SourceStatus[] }> {
  const live = await operator.ask("status", {}).catch((error: unknown) => {
    if (ENDING.has(codeOf(error) ?? "")) return undefined;
    throw error;
  });
  if (live === undefined) return { daemon: null };
  const { sources, removed: _removed, ...daemon } = live;
  return { daemon, sources };
}

const ENDING = new Set(["daemon_stopping", "control_lost"]);

async function serviceLine(
  config: Parameters<typeof findService>[0],
  state: StateFolder,
  context: Context,
): Promise<Status["service"]> {
  if ("apiUrl" in config.service) return { address: config.service.dbUrl, running: null, notApplied: [] };
  const service = await findService(config, state, context.env);
  const notApplied = service === undefined ? [] : (readServiceAddress(state)?.notApplied ?? []);
  return { address: service?.dbUrl ?? null, running: service !== undefined, notApplied };
}

/** The status for a person. */
export function statusText({
  stateDir,
  daemon,
  service,
  sources,
  unsynced,
  removed,
  failures,
}: Status): string {
  const lines = [daemonText(daemon), serviceText(service, daemon)];
  for (const change of [...(daemon?.notApplied ?? []), ...service.notApplied])
    lines.push(`config   not applied: ${change}`);
  if (sources.length + unsynced.length + removed.length === 0) lines.push(nothingSynced(stateDir).message);
  for (const source of sources) {
    const counts = [...badNews(source), agreementWords(source)];
    if (source.waiting > 0) counts.push(`${thousands(source.waiting)} waiting`);
    if (source.skipped > 0) counts.push(`${thousands(source.skipped)} skipped`);
    if (source.kept > 0) counts.push(`${thousands(source.kept)} kept without their files`);
    if (source.readInPart > 0) counts.push(`${thousands(source.readInPart)} read in part`);
    lines.push(`source   ${source.path}`, `         ${counts.join(", ")}`);
    const collection = source.collectionId ?? "not known yet";
    lines.push(`         ${source.tier}, owner ${source.ownerId}, collection ${collection}`);
    const leftOut = leftOutLine(source);
    if (leftOut !== undefined) lines.push(`         ${leftOut}`);
    const hold = holdLine(source);
    if (hold !== undefined) lines.push(`         ${hold}`);
    if (source.approval !== null) lines.push(`         ${tokenLine(source.approval.token)}`);
    for (const line of warningLines(source)) lines.push(`         ${line}`);
    const unreadable = unreadableLine(source);
    if (unreadable !== undefined) lines.push(`         ${unreadable}`);
    if (source.paused) lines.push(`         ${PAUSED_WORDS}`);
    if (source.degraded !== null) lines.push(`         ${source.degraded}`);
  }
  for (const { path, tier, ownerId } of unsynced)
    lines.push(`source   ${path}`, `         not synced yet; ${tier}, owner ${ownerId}`);
  for (const source of removed) {
    lines.push(`source   ${source.path}`, `         ${removedLine(source)}`);
  }
  return `${lines.join("\n")}\n${troubleLines(failures, FILES_SHOWN)}`;
}

/** The command that approves exactly what is shown. */
function tokenLine(token: string): string {
  return `\`kbsync approve --token ${token}\` approves what is held here`;
}

/**
 * How many files agree. For a halted source, only the number before the halt is known; a source whose comparison has not
 * finished may have more files.
 */
function agreementWords({ halted, compared, files, inAgreement }: SourceStatus): string {
  if (halted)
    return `${counted(files, "file")}, ${thousands(inAgreement)} of them in agreement before it was halted`;
  return compared
    ? `${thousands(inAgreement)} of ${counted(files, "file")} in agreement`
    : `${counted(inAgreement, "file")} synced so far; the comparison of the folder has not finished, so there may be more`;
}

function daemonText(daemon: Status["daemon"]): string {
  if (daemon === null) return "daemon   not running; these are the figures of the last pass";
  const { pid, idle, progress, filesPerSecond, secondsLeft } = daemon;
  const parts = [`running (process ${pid})`];
  if (idle) parts.push("nothing to do");
  else parts.push(`${counted(Math.max(0, progress.total - progress.done), "file")} to do`);
  if (!idle && filesPerSecond !== null) parts.push(`${thousands(Math.round(filesPerSecond))}/s`);
  if (!idle && secondsLeft !== null) parts.push(`${duration(secondsLeft)} left`);
  return `daemon   ${parts.join(", ")}`;
}

function serviceText({ address, running }: Status["service"], daemon: Status["daemon"]): string {
  const pace = daemon === null || daemon.service.kind === "open" ? "" : `; ${paceWords(daemon.service)}`;
  // A running daemon has asked a hosted service already.
  if (running === null) return `service  ${address}${daemon === null ? " (not asked)" : pace}`;
  return `service  ${running ? address : "not running"}${pace}`;
}

/** The reason that requests wait, for a person. */
export function paceWords(service: PaceState): string {
  if (service.kind === "open") return "the service answers";
  if (service.kind === "limited")
    return `at most ${thousands(service.requestsPerMinute)} requests a minute (sync.requestsPerMinute)`;
  const asked =
    service.kind === "waiting" && service.isAsked === true
      ? " as the service asks; `kbsync retry` tries now"
      : "";
  const until = `trying again at ${localTime(service.untilMs).slice(-8)}${asked}`;
  return service.kind === "key_refused"
    ? `the service refuses the key: ${service.reason}; ${until}`
    : `${outageWords(service)}; ${until}`;
}
