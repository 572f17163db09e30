import type { Command } from "commander";
import { FILES_MAX } from "../../wire/daemon.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { LiveStatus, PaceState, RemovedStatus, SourceStatus } from "../../wire/daemon-status.ts";
import type { ListedFile } from "../../wire/daemon-files.ts";
import { hasOwnReason } from "../../sync/plan/version.ts";
import { readStatus } from "../../sync/operate/status.ts";
import { paceTrouble } from "../../sync/send/remote/pacer.ts";
import { searchableWords } from "../output/standing-words.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { localTime, duration } from "../output/progress.ts";
import { isRestarting, nothingSynced, type Operator, openOperator } from "../state/ask.ts";
import { unknownChangesWords } from "../state/no-daemon.ts";
import { findService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import {
  FILES_SHOWN,
  holdLine,
  leftOutLine,
  leftOutWords,
  warningLines,
  removedLine,
  PAUSED_WORDS,
  troubleLines,
  unreadableLine,
} from "./follow.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { besideWords, LISTED_STATES } from "../../wire/file-state.ts";
import { listedText, listFiles } from "./listed-files.ts";
import { readServiceAddress, type StateFolder, stateFolder } from "../state/state-folder.ts";

interface StatusOptions extends CommonOptions {
  readonly held?: boolean;
  readonly failed?: boolean;
  readonly waiting?: boolean;
  readonly skipped?: boolean;
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
  /** Folders of the configuration that no pass has seen yet; none with a daemon, which says which folders it syncs. */
  readonly unsynced: readonly { readonly path: string; readonly tier: Tier; readonly ownerId: string }[];
  readonly removed: readonly RemovedStatus[];
  readonly failures: readonly ListedFile[];
  readonly skipped: readonly ListedFile[];
}

/**
 * `kbsync status [PATH]`: how much is searchable as it is on disk, by the running daemon, or else by the ledger. With a path or
 * a state, it lists the files that are not instead, each with its reason.
 */
export function addStatus(program: Command, context: Context): void {
  program
    .command("status")
    .description(
      "show whether the knowledge base is up to date; with a path or a state, list the files that are not, each with the reason",
    )
    .argument("[path]", "a file, or a folder with all below it")
    .option("--failed", "list files that could not be read, or that the service refused")
    .option("--waiting", "list files that are not sent yet, or that the service is still reading")
    .option("--held", "list deletes that wait for kbsync approve")
    .option("--skipped", "list files that are left out, with the rule")
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: StatusOptions) => status(context, path, options));
}

async function status(context: Context, path: string | undefined, options: StatusOptions): Promise<void> {
  const operator = openOperator(context, options);
  const chosen = LISTED_STATES.filter((state) => options[state === "reading" ? "waiting" : state] === true);
  if (path === undefined && chosen.length === 0) {
    print(context, options, await statusOf(context, operator), statusText);
    return;
  }
  const states = chosen.length === 0 ? LISTED_STATES : chosen;
  const listing = await listFiles(operator, path, states);
  print(context, options, listing, (now) => listedText(now, states, operator.config.stateDir));
  if (listing.files.length >= FILES_MAX)
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
  const listed = live && (await operator.ask("files", { limit: FILES_MAX }));
  const sources = live ?? ledger?.sources ?? [];
  const removed = ledger?.removed ?? [];
  const known = new Set([...sources, ...removed].map(({ path }) => path));
  return {
    stateDir: state.path,
    daemon,
    service: await serviceLine(config, state, context),
    sources,
    unsynced: (live === undefined ? config.sources : [])
      .filter(({ absolutePath }) => !known.has(absolutePath))
      .map(({ absolutePath: path, collection: tier, ownerId }) => ({ path, tier, ownerId })),
    removed,
    failures: (listed?.files ?? ledger?.troubled ?? []).filter(hasOwnReason),
    skipped: ledger?.skipped ?? [],
  };
}

/** The answer of the daemon. One that is starting or ending counts as none. */
async function askLive(
  operator: Operator,
): Promise<{ daemon: Status["daemon"]; sources?: readonly SourceStatus[] }> {
  const live = await operator.ask("status", {}).catch((error: unknown) => {
    if (isRestarting(error)) return undefined;
    throw error;
  });
  if (live === undefined) return { daemon: null };
  const { sources, removed: _removed, ...daemon } = live;
  return { daemon, sources };
}

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

/** The status for a person: the whole in five lines, then each folder with what it needs. */
export function statusText({
  stateDir,
  daemon,
  service,
  sources,
  unsynced,
  removed,
  failures,
}: Status): string {
  const lines = [daemonText(daemon, sources, stateDir), serviceText(service, daemon)];
  for (const change of [...(daemon?.notApplied ?? []), ...service.notApplied])
    lines.push(`config   not applied: ${change}`);
  if (sources.length + unsynced.length + removed.length === 0) lines.push(nothingSynced(stateDir).message);
  else lines.push(filesText(sources), searchText([...sources, ...unsynced], daemon), besideText(sources));
  for (const source of sources) {
    const collection = source.collectionId ?? "not known yet";
    const facts = `${source.tier}, owner ${source.ownerId}, collection ${collection}`;
    const counts = sources.length > 1 ? `${searchableWords([source])}; ` : "";
    const needs = [
      leftOutLine(source),
      holdLine(source),
      source.approval === null ? undefined : tokenLine(source.approval.token),
      ...warningLines(source),
      unreadableLine(source),
      source.paused ? PAUSED_WORDS : undefined,
      source.degraded ?? undefined,
    ].filter((need) => need !== undefined);
    lines.push(
      `source   ${source.path}`,
      ...[`${counts}${facts}`, ...needs].map((line) => `         ${line}`),
    );
  }
  for (const { path, tier, ownerId } of unsynced)
    lines.push(`source   ${path}`, `         not synced yet; ${tier}, owner ${ownerId}`);
  for (const source of removed) {
    lines.push(`source   ${source.path}`, `         ${removedLine(source)}`);
  }
  return `${lines.join("\n")}\n${troubleLines(failures, FILES_SHOWN)}`;
}

/** `files    7 of 8 files searchable, 1 failed`. While a folder is being compared, there may be more. */
function filesText(sources: readonly SourceStatus[]): string {
  const isWhole = sources.every(({ compared, halted }) => compared || halted);
  return `files    ${searchableWords(sources)}${isWhole ? "" : "; the folders are still being compared, so there may be more"}`;
}

/** Whether searches use meaning beside words, and what they do not find by it yet. */
function searchText(sources: readonly Pick<SourceStatus, "tier">[], daemon: Status["daemon"]): string {
  const words = "search   by words";
  if (sources.every(({ tier }) => tier === "fastest")) return words;
  const pending = daemon?.pending ?? undefined;
  if (pending === undefined) return `${words} and meaning; what has vectors is not known now`;
  if (pending.isOff) return `${words} alone: the embedding model is missing or does not answer`;
  if (pending.embed === 0) return `${words} and meaning`;
  const documents = counted(pending.embed, "document is", "documents are");
  return `${words} and meaning; ${pending.more === true ? "at least " : ""}${documents} found by words alone so far`;
}

/** What is not among the files: skipped ones, those that rules leave out, and deletes. */
function besideText(sources: readonly SourceStatus[]): string {
  const leftOut = leftOutWords(sources.flatMap((source) => source.leftOut));
  const beside = [...besideWords(sources), ...(leftOut === "" ? [] : [`${leftOut} left out`])];
  return `beside   ${beside.length === 0 ? "nothing is held or unreadable" : beside.join(", ")}`;
}

/** The command that approves exactly what is shown. */
function tokenLine(token: string): string {
  return `\`kbsync approve --token ${token}\` approves what is held here`;
}

function daemonText(daemon: Status["daemon"], sources: readonly SourceStatus[], stateDir: string): string {
  if (daemon === null)
    return `daemon   ${unknownChangesWords(stateDir)}, and these are the figures of the last pass`;
  const { pid, idle, filesPerSecond, secondsLeft } = daemon;
  const nothing = sources.some(({ waiting }) => waiting > 0) ? "nothing to do now" : "nothing to do";
  const parts = [`running (process ${pid})`, idle ? nothing : "working"];
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
  return `${paceTrouble(service) ?? ""}; trying again at ${localTime(service.untilMs).slice(-8)}${asked}`;
}
