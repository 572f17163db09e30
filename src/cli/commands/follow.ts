import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { FILES_MAX } from "../../wire/daemon.ts";
import type { RemovedStatus, SourceStatus } from "../../wire/daemon-status.ts";
import type { Daemon, DaemonStatus } from "../../sync/daemon.ts";
import type { DaemonActivity, ListedFile } from "../../wire/daemon-files.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Context } from "../output/context.ts";
import { visibleLine } from "../output/visible.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { duration } from "../output/progress.ts";
import { badNews, searchableWords, standingWords } from "../output/standing-words.ts";
import { type Embedded, embeddedOf, shareOf, startProgress } from "../terminal/pass-progress.ts";
import { unbroken } from "../terminal/prose.ts";

/** Interval between two readings of the progress, in milliseconds. */
export const POLL_EVERY_MS = 100;

/** The failed files that the log has named: each failure is shown once. */
export interface LoggedFailures {
  readonly onActivity: (activity: DaemonActivity) => void;
  has(file: Pick<ListedFile, "source" | "path">): boolean;
}

/** Notes the failures that a log shows on the same terminal as the summary. */
export function openLoggedFailures(
  log: Pick<Logger, "isLevelEnabled">,
  { stdout, stderrIsTTY }: Pick<Context, "stdout" | "stderrIsTTY">,
): LoggedFailures {
  const isSeen = stdout.isTTY && stderrIsTTY;
  const shown = new Set<string>();
  const keyOf = ({ source, path }: Pick<ListedFile, "source" | "path">): string => `${source}\n${path}`;
  return {
    onActivity: (activity) => {
      const isFailure = activity.outcome === "refused" || activity.outcome === "parked";
      if (isFailure && isSeen && log.isLevelEnabled("warn")) shown.add(keyOf(activity));
    },
    has: (file) => shown.has(keyOf(file)),
  };
}

/**
 * Prints the progress and the outcome of a daemon's first pass on standard output; the log reports later ones.
 * Ends with the outcome, or when the signal aborts.
 */
export async function followDaemon(
  daemon: Daemon,
  context: Context,
  logged: Pick<LoggedFailures, "has">,
  signal: AbortSignal,
): Promise<void> {
  const startMs = context.nowMs();
  const progress = startProgress(context, startMs, () => daemon.pending(signal));
  try {
    for (;;) {
      const status = daemon.status();
      if (status.idle) break;
      progress.update(status, context.nowMs());
      await sleep(POLL_EVERY_MS, undefined, { signal });
    }
    progress.finish();
    const status = daemon.status();
    context.stdout.write(passSummary(status, context.nowMs() - startMs));
    // What ends the daemon meanwhile is reported where it runs.
    const pending = await daemon.pending(signal).catch(() => undefined);
    const files = status.sources.reduce((sum, source) => sum + source.files, 0);
    context.stdout.write(embeddedLine(pending && embeddedOf(pending, status), files));
    const troubled = daemon.files({ limit: FILES_MAX }).filter((file) => !logged.has(file));
    context.stdout.write(troubleLines(troubled, FILES_SHOWN));
  } catch (error) {
    progress.finish();
    if (!signal.aborted) throw error;
  }
}

/** Which share is found by meaning after a pass; empty if all is, or it is not known. */
export function embeddedLine(embedded: Embedded | undefined, files: number): string {
  if (embedded === undefined || (embedded.files >= files && !embedded.isFewer)) return "";
  return `found by meaning: ${shareOf(embedded, files)}; the rest follows while this runs, and words find it already\n`;
}

/**
 * Responds to Ctrl-C at once with what still has to end. Returns a function that stops this, and prints a summary if a person
 * has stopped the program.
 */
export function answerStop(
  { signal, stderr, stderrIsTTY }: Pick<Context, "signal" | "stderr" | "stderrIsTTY">,
  status: () => DaemonStatus,
): () => void {
  // A service manager needs no answer: it stopped the program itself.
  if (!stderrIsTTY) return () => undefined;
  const answer = (): void => {
    const { inFlight } = status().progress;
    const left = inFlight === 0 ? "" : `; ${counted(inFlight, "request")} to finish`;
    stderr.write(`Stopping${left} (Ctrl-C again stops at once)\n`);
  };
  signal.addEventListener("abort", answer, { once: true });
  return () => {
    signal.removeEventListener("abort", answer);
    if (signal.aborted)
      stderr.write(`Stopped: ${standingWords(status())}; the next start continues from here\n`);
  };
}

/** Troubled files that are named one by one under each heading; `kbsync status --${heading}` lists the rest. */
export const FILES_SHOWN = 20;

/** `synced: 20,000 files searchable, 20,000 changes in 9 s`, after what needs attention, and followed by why. */
export function passSummary(status: DaemonStatus, elapsedMs: number): string {
  const { sources, progress } = status;
  const halted = sources.filter((source) => source.halted).length;
  const bad = [...(halted > 0 ? [`${counted(halted, "folder")} halted`] : []), ...badNews(sources)];
  const work =
    progress.sent === 0
      ? progress.failed === 0
        ? "nothing to send"
        : "nothing sent"
      : `${counted(progress.sent, "change")} in ${duration(elapsedMs / 1000)}`;
  const reasons = sources.flatMap((source) => {
    const words = [
      holdLine(source),
      ...warningLines(source),
      unreadableLine(source),
      source.paused ? PAUSED_WORDS : undefined,
    ];
    return words.flatMap((each) => (each === undefined ? [] : [`  ${source.path}: ${each}\n`]));
  });
  const left = status.removed.map((source) => `  ${source.path}: ${removedLine(source)}\n`);
  const skipped = sources.reduce((total, source) => total + source.skipped, 0);
  return `${bad.length === 0 ? "" : `${bad.join(", ")}; `}synced: ${searchableWords(sources)}, ${work}\n${reasons.join("")}${left.join("")}${skippedLine(skipped)}`;
}

/** The words for a paused source. */
export const PAUSED_WORDS = "paused: nothing is sent until `kbsync resume`";

/** Why a source is halted, or why its deletes are held; undefined if neither applies. */
export function holdLine({
  halted,
  holdReason,
  remedy,
}: Pick<SourceStatus, "halted" | "holdReason" | "remedy">): string | undefined {
  const what = remedy === null ? "" : ` (${remedy})`;
  if (halted) return `halted, nothing is sent${holdReason === null ? "" : `: ${holdReason}${what}`}`;
  return holdReason === null ? undefined : `deletes held: ${holdReason}${what}`;
}

/** Number of unreadable paths that are listed. */
const UNREADABLE_SHOWN = 3;

/** The unreadable files, the first ones by name; undefined if there are none, or no name is known. */
export function unreadableLine({
  unreadable,
  unreadablePaths,
  warnings,
}: Pick<SourceStatus, "unreadable" | "unreadablePaths" | "warnings">): string | undefined {
  const paths = unreadablePaths.filter((path) => warnings.every((warning) => warning.path !== path));
  if (unreadable === 0 || paths.length === 0) return undefined;
  const shown = paths.slice(0, UNREADABLE_SHOWN);
  const names = shown.map((path) => (path === "" ? "the folder itself" : visibleLine(path))).join(", ");
  const rest = unreadable - (unreadablePaths.length - paths.length) - shown.length;
  return `cannot be read: ${names}${rest > 0 ? ` and ${thousands(rest)} more` : ""} (check owner and mode)`;
}

/** Number of rules that are named. */
const RULES_SHOWN = 3;

/** What the rules leave out, by rule; undefined if that is nothing. */
export function leftOutLine({ leftOut }: Pick<SourceStatus, "leftOut">): string | undefined {
  if (leftOut.length === 0) return undefined;
  const words = leftOut
    .slice(0, RULES_SHOWN)
    .map((each) => `${leftOutWords([each])} (${visibleLine(each.reason.replace(/^left out /, ""))})`);
  const more = leftOut.length > RULES_SHOWN ? ", and more" : "";
  return `left out: ${words.join(", ")}${more}; \`kbsync status --skipped\` lists them`;
}

/** `2 folders and 1 file`; empty if the rules leave out nothing. */
export function leftOutWords(leftOut: SourceStatus["leftOut"]): string {
  const sum = (of: "files" | "folders"): number => leftOut.reduce((total, each) => total + each[of], 0);
  const [folders, files] = [sum("folders"), sum("files")];
  const counts = [
    ...(folders > 0 ? [counted(folders, "folder")] : []),
    ...(files > 0 ? [counted(files, "file")] : []),
  ];
  return counts.join(" and ");
}

/** What to know about folders and files of a source, each with what to do. */
export function warningLines({ warnings }: Pick<SourceStatus, "warnings">): readonly string[] {
  return warnings.map(({ path, reason, remedy }) => {
    const where = path === "" ? "" : `${visibleLine(path)}: `;
    return `${where}${visibleLine(reason)} (${remedy})`;
  });
}

/** The words for a source that left the configuration. */
export function removedLine({
  path,
  resources,
  approved,
}: Pick<RemovedStatus, "path" | "resources" | "approved">): string {
  if (approved) return `no longer synced; its ${counted(resources, "document")} will be deleted, as approved`;
  const [are, them] = resources === 1 ? ["is", "it"] : ["are", "them"];
  const remove = `\`kbsync remove ${shellWord(path)}\` deletes ${them}`;
  return `no longer synced; its ${counted(resources, "document")} ${are} still searchable (${remove})`;
}

/** `  3 skipped` and how to list them; empty if there are none. */
function skippedLine(count: number): string {
  return count === 0 ? "" : `  ${thousands(count)} skipped (\`kbsync status --skipped\` lists them)\n`;
}

/** The files that are not searchable, by state, up to `limit` each, with the reasons. */
export function troubleLines(files: readonly ListedFile[], limit: number): string {
  const found = (...states: readonly string[]): readonly ListedFile[] =>
    files.filter(({ state }) => states.includes(state));
  const waiting = found("waiting", "reading");
  return [
    section("failed", found("failed"), limit),
    section("waiting", waiting, limit),
    section("held", found("held"), limit),
  ].join("");
}

function section(heading: string, files: readonly ListedFile[], limit: number): string {
  if (files.length === 0) return "";
  const lines = files
    .slice(0, limit)
    .map(
      ({ source, path, message }) =>
        `  ${unbroken(visibleLine(path === "" ? source : path))}: ${visibleLine(message)}\n`,
    );
  const rest = files.length - lines.length;
  const more = rest === 0 ? "" : `  and ${thousands(rest)} more (\`kbsync status --${heading}\` lists all)\n`;
  return `${heading}\n${lines.join("")}${more}`;
}
