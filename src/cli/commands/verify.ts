import { resolve } from "node:path";
import type { Command } from "commander";
import type { AuditReport, Finding } from "../../wire/daemon-audit.ts";
import { absoluteFolder, openOperator, printJson } from "../state/ask.ts";
import { reachService } from "../compose/reached-service.ts";
import { openConfiguredDaemon } from "../compose/configured-daemon.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { openLog } from "../terminal/log.ts";
import { syncedSources } from "./named-sources.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { badNews, searchableWords } from "../output/standing-words.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { visibleLine } from "../output/visible.ts";

interface VerifyOptions extends CommonOptions {
  readonly repair?: boolean;
  readonly json?: boolean;
}

/** Maximum number of findings in the text; `--json` has them all. */
const SHOWN = 50;

/** `kbsync verify [SOURCE]`: the audit. */
export function addVerify(program: Command, context: Context): void {
  program
    .command("verify")
    .description("compare kbsync's records with what the service really has, and list the differences")
    .argument("[source]", "folder of a source (default: all sources)")
    .option(
      "--repair",
      "send missing and altered documents again, and delete duplicates that kbsync made; foreign documents stay",
    )
    .addOption(jsonOption())
    .action(async (source: string | undefined, options: VerifyOptions) => verify(context, source, options));
}

async function verify(context: Context, source: string | undefined, options: VerifyOptions): Promise<void> {
  const operator = openOperator(context, options);
  const repair = options.repair === true;
  const report =
    (await operator.ask("verify", { repair, ...absoluteFolder(context, source) })) ??
    (await verifyHere(context, source, options));
  if (options.json === true) printJson(context, report);
  else context.stdout.write(auditText(report));
  context.exitCode = report.agrees ? EXIT.done : EXIT.filesFailed;
}

/** No daemon runs, so this process acts as one during the audit. */
async function verifyHere(
  context: Context,
  source: string | undefined,
  options: VerifyOptions,
): Promise<AuditReport> {
  const config = syncedSources(context, source, options);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  const service = await reachService(config, state, context.env, log);
  try {
    const daemon = openConfiguredDaemon(config, state, service, log, { levelOfDone: () => "debug" });
    const repair = options.repair === true;
    try {
      return await daemon.audit({
        repair,
        folder: source === undefined ? undefined : resolve(context.cwd, source),
        signal: context.signal,
      });
    } finally {
      await daemon.close();
    }
  } finally {
    await service.close();
  }
}

/** One line per finding, then the sum. */
export function auditText(report: AuditReport): string {
  const { sources, findings, unnamed, foreign, left } = report;
  const shown = findings.slice(0, SHOWN);
  const lines = shown.map(findingLine);
  const more = findings.length - shown.length + unnamed;
  if (more > 0) lines.push(`… and ${thousands(more)} more`);
  for (const { path, resources, unjudged, lost, listed } of sources) {
    if (!listed) lines.push(`${path}: nothing to compare yet: the service has not sent the collection's id`);
    else lines.push(`${path}: ${counted(resources, "document")} compared${unjudgedWords(unjudged)}`);
    if (lost !== null) lines.push(`${path}: ${lost}. Nothing is sent: \`kbsync status\` says what to do.`);
  }
  if (foreign > 0) lines.push(`${counted(foreign, "document")} of others there, left unchanged`);
  const found = findings.filter(({ kind }) => kind !== "foreign").length + unnamed;
  lines.push(
    found === 0
      ? agreeWords(report)
      : `${counted(found, "differs", "differ")}, ${thousands(found - left)} of them repaired`,
  );
  return `${lines.join("\n")}\n`;
}

function unjudgedWords(count: number): string {
  if (count === 0) return "";
  const verbs = count === 1 ? ["was", "is"] : ["were", "are"];
  return `, ${thousands(count)} ${verbs[0] ?? ""} sent less than two minutes ago and ${verbs[1] ?? ""} not checked yet`;
}

/** The words if no difference was found; they say how much was compared. */
function agreeWords({ sources, agrees }: AuditReport): string {
  if (!agrees) {
    const bad = badNews(sources);
    const counts = [searchableWords(sources), ...bad].join(", ");
    return sources.some(({ lost }) => lost !== null) ? counts : `what was sent is there; ${counts}`;
  }
  if (sources.length > 0 && sources.every(({ listed, unjudged }) => listed && unjudged === 0))
    return "all agree";
  return sources.some(({ resources }) => resources > 0)
    ? "everything that was compared agrees"
    : "nothing was compared yet";
}

function findingLine({ kind, path, title, what, repaired }: Finding): string {
  const where = `${kind.padEnd(8)} ${visibleLine(path === "" ? title : path)}`;
  if (!repaired) return `${where}  (${what})`;
  // A file's own resource is sent again; a surplus one is deleted.
  return kind === "missing" || kind === "altered"
    ? `${where}  (${what}; put right)`
    : `${where}  (deleted: ${what})`;
}
