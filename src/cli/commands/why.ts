import type { Command } from "commander";
import { codeOf } from "../../lib/failure.ts";
import type { Explanation, FileFacts, OnDisk, OpenIntent } from "../../wire/daemon-files.ts";
import { OLDER_WORDS, STATE_WORDS } from "../../wire/file-state.ts";
import type { AnswerOf } from "../../wire/daemon.ts";
import { withoutMarker } from "../../wire/marker.ts";
import { isHashOf } from "../../sync/plan/versions.ts";
import { explain } from "../../sync/operate/why/explain.ts";
import { activityLine } from "./activity.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { localTime } from "../output/progress.ts";
import { noDaemonWords } from "../state/no-daemon.ts";
import { openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { paceWords } from "./status.ts";

interface WhyOptions extends CommonOptions {
  readonly json?: boolean;
}

/** The state of the file in the running daemon; null if none runs. */
type Live = AnswerOf<"why">["daemon"];

/** `kbsync why PATH`: every decision about a file. */
export function addWhy(program: Command, context: Context): void {
  program
    .command("why")
    .description("explain every decision about a file: rules, content, document, errors, and what comes next")
    .argument("<path>", "a file; it need not exist any more")
    .addOption(jsonOption())
    .action(async (path: string, options: WhyOptions) => why(context, path, options));
}

async function why(context: Context, typed: string, options: WhyOptions): Promise<void> {
  const operator = openOperator(context, options);
  const path = operator.locate(typed);
  const found = (await operator.ask("why", { path }).catch(notItsOwn)) ??
    (await operator.actAlone("why", { path })) ?? {
      ...(await explain(undefined, operator.sources(), path, context.signal)),
      daemon: null,
    };
  if (options.json === true) printJson(context, found);
  else context.stdout.write(whyText(found, found.daemon, operator.config.stateDir));
}

/** A daemon with another configuration may not know this source. */
function notItsOwn(error: unknown): undefined {
  if (codeOf(error) !== "outside_sources") throw error;
}

/** The explanation for a person, the verdict first. */
export function whyText(found: Explanation, live: Live, stateDir: string): string {
  const { source, path, wanted, leftOutBy, disk, ledger, next } = found;
  const lines: [string, string][] = [
    ["file", path === "" ? "the source's folder itself" : path],
    ["source", source],
    ...stateLines(found),
    ["next", `${next.action}: ${next.why}`],
    ["included", wanted ? "yes" : `no: ${leftOutBy ?? ""}`],
    ["disk", diskWords(disk)],
    ...contentLines(found),
    ...recipeLines(found),
  ];
  if (ledger !== null && ledger.mtimeMs !== 0) lines.push(["known", knownWords(ledger)]);
  if (ledger?.docId !== undefined && ledger.docId !== null) lines.push(["document", ledger.docId]);
  if (ledger?.error !== undefined && ledger.error !== null) lines.push(["error", troubleWords(ledger)]);
  if (ledger?.warning !== undefined && ledger.warning !== null) lines.push(["in part", ledger.warning]);
  for (const { docId, state } of found.held) {
    const waits = next.action === "nothing" ? "is not sent" : "waits for approval";
    lines.push([
      "held",
      `the delete of document ${docId ?? "(none)"} ${state === "doomed" ? "was approved" : waits}`,
    ]);
  }
  for (const intent of found.intents) {
    const since = intent.atMs === null ? "" : ` since ${localTime(intent.atMs)}`;
    const message = intent.message === null ? "" : `: ${intent.message}`;
    const sent = `${INTENT_WORDS[intent.kind]}${since}, ${counted(intent.attempts, "try", "tries")}`;
    lines.push(["open", `${sent}${message}`]);
  }
  if (found.state.paused) lines.push(["paused", "the source is paused until `kbsync resume`"]);
  if (found.state.halted !== null) lines.push(["halted", found.state.halted]);
  lines.push(["daemon", live === null ? noDaemonWords(stateDir) : `running; ${paceWords(live.service)}`]);
  const facts = lines.map(([name, words]) => `${name.padEnd(11)} ${visibleLine(words)}\n`).join("");
  const recent = found.activity
    .map((activity) => activityLine({ ...activity, source }))
    .map((line) => `  ${line}`)
    .join("");
  return recent === "" ? facts : `${facts}recent\n${recent}`;
}

function diskWords({ kind, sizeBytes, mtimeMs, target, error, what }: OnDisk): string {
  if (kind === "absent") return "nothing is there";
  if (kind === "unreadable") return `cannot be read: ${error ?? ""}`;
  const size = kind === "file" ? `, ${thousands(sizeBytes ?? 0)} bytes` : "";
  const changed = mtimeMs === undefined ? "" : `, changed ${localTime(mtimeMs)}`;
  const plain = { file: "a file", folder: "a folder", link: "a symbolic link", other: "not a regular file" }[
    kind
  ];
  return `${what ?? plain}${target === undefined ? "" : ` to ${target}`}${size}${changed}`;
}

function contentLines({ content, ledger }: Explanation): [string, string][] {
  if (content === null) return [];
  if (content.hash === null)
    return [["content", `${content.outcome}: ${content.reason ?? "read again later"}`]];
  const before = ledger?.hash ?? "";
  const compared =
    before === ""
      ? "not acknowledged yet"
      : isHashOf(before, content.hash)
        ? "as it was sent"
        : `differs from what was sent (${before.slice(0, 16)})`;
  return [["content", `sha256 ${content.hash.slice(0, 16)}, ${compared}`]];
}

function recipeLines({ recipe }: Explanation): [string, string][] {
  if (recipe === null) return [];
  const { title, description, settings, tier, ownerId, kind } = recipe;
  const { strategy, chunkSize, chunkOverlap } = settings;
  const sizes = `up to ${thousands(chunkSize)} characters, overlapping by ${thousands(chunkOverlap)}`;
  return [
    ["title", title],
    ["description", withoutMarker(description)],
    ["sent as", SENT_AS[kind]],
    ["chunks", `${strategy}, ${sizes}`],
    ["tier", `${tier}, owner ${ownerId}`],
  ];
}

const SENT_AS: Readonly<Record<NonNullable<Explanation["recipe"]>["kind"], string>> = {
  content: "text",
  file: "the file itself",
  link: "a link",
};

const INTENT_WORDS: Readonly<Record<OpenIntent["kind"], string>> = {
  create: "a new document was sent, and is not acknowledged yet",
  doubt: "an update was sent, and is not acknowledged yet",
  delete: "a delete is still to be done",
};

/** `waiting: it is being sent, since 11:02:33; an older version is searchable`. */
function stateLines({ version }: Explanation): [string, string][] {
  if (version === null) return [];
  const { state, reason, sinceMs, hasOlder } = version;
  const since = sinceMs === null ? "" : `, since ${localTime(sinceMs)}`;
  return [["state", `${STATE_WORDS[state]}: ${reason}${since}${hasOlder ? OLDER_WORDS : ""}`]];
}

/** The version that the ledger knows. */
function knownWords({ sizeBytes, mtimeMs }: FileFacts): string {
  return `${thousands(sizeBytes)} bytes changed ${localTime(mtimeMs)}`;
}

function troubleWords({ error, tries, retryAtMs }: FileFacts): string {
  const again = retryAtMs === null ? "" : `, next try ${localTime(retryAtMs)}`;
  return `${error?.message ?? ""} (tried ${tries === 1 ? "once" : `${thousands(tries)} times`}${again})`;
}
