import type { Command } from "commander";
import { codeOf } from "../../lib/failure.ts";
import type { Explanation, FileFacts, OnDisk } from "../../wire/daemon-files.ts";
import type { AnswerOf } from "../../wire/daemon.ts";
import { explain } from "../../sync/why/explain.ts";
import { activityLine } from "./activity.ts";
import { localTime, thousands } from "../output/progress.ts";
import { openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { paceWords } from "./status.ts";

interface WhyOptions extends CommonOptions {
  readonly json?: boolean;
}

/** What the running daemon is doing with the file; null if none runs. */
type Live = AnswerOf<"why">["daemon"];

/** `kbsync why PATH`: every decision about a file. */
export function addWhy(program: Command, context: Context): void {
  program
    .command("why")
    .description("explain every decision about a file: rules, content, resource, errors, and what comes next")
    .argument("<path>", "a file, which need not exist any more")
    .option("--json", "print it as JSON")
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
  else context.stdout.write(whyText(found, found.daemon));
}

/** A daemon may run with another configuration, and know nothing of this source. */
function notItsOwn(error: unknown): undefined {
  if (codeOf(error) !== "outside_sources") throw error;
}

/** All of it for a person, the verdict first. */
export function whyText(found: Explanation, live: Live): string {
  const { source, path, wanted, leftOutBy, disk, ledger, next } = found;
  const lines: [string, string][] = [
    ["file", path === "" ? "the source's folder itself" : path],
    ["source", source],
    ["next", `${next.action}: ${next.why}`],
    ["wanted", wanted ? "yes" : `no: ${leftOutBy ?? ""}`],
    ["disk", diskWords(disk)],
    ...contentLines(found),
    ...recipeLines(found),
  ];
  // Of the source's own folder there is no row: its files have theirs.
  if (path !== "") lines.push(["ledger", ledger === null ? "does not know it" : ledgerWords(ledger)]);
  if (ledger?.docId !== undefined && ledger.docId !== null) lines.push(["resource", ledger.docId]);
  if (ledger?.error !== undefined && ledger.error !== null) lines.push(["trouble", troubleWords(ledger)]);
  if (ledger?.warning !== undefined && ledger.warning !== null) lines.push(["in part", ledger.warning]);
  for (const row of found.held)
    lines.push(["held", `a delete of ${row.docId ?? "no resource"} (${row.state})`]);
  for (const intent of found.intents) {
    const since = intent.atMs === null ? "" : ` since ${localTime(intent.atMs)}`;
    const message = intent.message === null ? "" : `: ${intent.message}`;
    lines.push(["open", `${intent.kind}${since}, attempts: ${intent.attempts}${message}`]);
  }
  if (found.state.paused) lines.push(["paused", "the source is paused: `kbsync resume` goes on"]);
  if (found.state.halted !== null) lines.push(["halted", found.state.halted]);
  lines.push(["daemon", liveWords(live)]);
  const facts = lines.map(([name, words]) => `${name.padEnd(9)} ${visibleLine(words)}\n`).join("");
  const lately = found.activity
    .map((activity) => activityLine({ ...activity, source }))
    .map((line) => `  ${line}`)
    .join("");
  return lately === "" ? facts : `${facts}lately\n${lately}`;
}

function diskWords({ kind, sizeBytes, mtimeMs, target, error, what, misnamed }: OnDisk): string {
  if (kind === "absent") return "nothing is there";
  if (kind === "unreadable") return `cannot be read: ${error ?? ""}`;
  const size = kind === "file" ? `, ${thousands(sizeBytes ?? 0)} bytes` : "";
  const changed = mtimeMs === undefined ? "" : `, changed ${localTime(mtimeMs)}`;
  const plain = { file: "a file", folder: "a folder", link: "a symbolic link", other: "no regular file" }[
    kind
  ];
  const words = `${what ?? plain}${misnamed === undefined ? "" : ", by a name that is not UTF-8"}`;
  return `${words}${target === undefined ? "" : ` to ${target}`}${size}${changed}`;
}

function contentLines({ content, ledger }: Explanation): [string, string][] {
  if (content === null) return [];
  if (content.hash === null)
    return [["content", `${content.outcome}: ${content.reason ?? "read again later"}`]];
  const before = ledger?.hash ?? "";
  const compared =
    before === ""
      ? "nothing acknowledged to compare with"
      : before === content.hash
        ? "as acknowledged"
        : `acknowledged was ${before.slice(0, 16)}`;
  return [["content", `sha256 ${content.hash.slice(0, 16)}, ${compared}`]];
}

function recipeLines({ recipe }: Explanation): [string, string][] {
  if (recipe === null) return [];
  const { title, description, settings, tier, ownerId, kind, from } = recipe;
  const { strategy, chunkSize, chunkOverlap } = settings;
  return [
    ["title", `${title} (${from.title})`],
    ["about", `${description} (${from.description})`],
    ["kind", `${kind} (${from.kind})`],
    ["settings", `${strategy}, ${chunkSize}/${chunkOverlap} (${from.settings})`],
    ["stored", `${tier} (${from.tier}), owner ${ownerId}`],
  ];
}

function ledgerWords({ state, sizeBytes, mtimeMs }: FileFacts): string {
  return `${state}, as of ${thousands(sizeBytes)} bytes changed ${localTime(mtimeMs)}`;
}

function troubleWords({ error, tries, retryAtMs }: FileFacts): string {
  const again = retryAtMs === null ? "" : `, tried again ${localTime(retryAtMs)}`;
  return `${error?.code ?? ""}: ${error?.message ?? ""} (tries: ${tries}${again})`;
}

function liveWords(live: Live): string {
  if (live === null) return "not running";
  const doing = live.underWay
    ? "works on it"
    : live.pending
      ? "checks it again later"
      : "has nothing to do with it";
  return live.service.kind === "open" ? doing : `${doing}; ${paceWords(live.service)}`;
}
