import { resolve } from "node:path";
import type { Command } from "commander";
import type { AuditReport, Finding } from "../sync/audit/report.ts";
import { absolute, openOperator, printJson } from "./ask.ts";
import { openConfiguredDaemon, reachService } from "./compose.ts";
import type { Context } from "./context.ts";
import { EXIT } from "./exit-code.ts";
import { openLog } from "./log.ts";
import type { CommonOptions } from "./options.ts";
import { counted, thousands } from "./progress.ts";
import { printProof } from "./proof.ts";
import { makeStateFolder } from "./state-folder.ts";
import { loadSources } from "./up.ts";

interface VerifyOptions extends CommonOptions {
  readonly repair?: boolean;
  readonly report?: boolean;
  readonly json?: boolean;
}

/** Findings that a person is shown; `--json` has them all. */
const SHOWN = 50;

/** `kbsync verify [SOURCE]`: the audit, and the proof that disk, ledger and service agree. */
export function addVerify(program: Command, context: Context): void {
  program
    .command("verify")
    .description("compare the ledger with what the service really holds, and say what differs")
    .argument("[source]", "folder of one source (default: all)")
    .option(
      "--repair",
      "send again what is missing or altered, delete second resources of ours; foreign ones stay",
    )
    .option("--report", "read every file now and prove: disk = ledger = service, by hash, as JSON")
    .option("--json", "print the findings as JSON")
    .action(async (source: string | undefined, options: VerifyOptions) => verify(context, source, options));
}

async function verify(context: Context, source: string | undefined, options: VerifyOptions): Promise<void> {
  if (options.report === true) {
    context.exitCode = (await printProof(context, source, options)) ? EXIT.done : EXIT.filesFailed;
    return;
  }
  const repair = options.repair === true;
  const operator = openOperator(context, options);
  const report =
    (await operator.ask({ command: "verify", repair, ...absolute("folder", context, source) })) ??
    (await verifyHere(context, source, options));
  if (options.json === true) printJson(context, report);
  else context.stdout.write(auditText(report));
  context.exitCode = report.left === 0 ? EXIT.done : EXIT.filesFailed;
}

/** No daemon runs, so this process is it for as long as the audit takes. */
async function verifyHere(
  context: Context,
  source: string | undefined,
  options: VerifyOptions,
): Promise<AuditReport> {
  const config = loadSources(context, undefined, options);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY);
  const service = await reachService(config, state, context.env, log);
  try {
    const daemon = openConfiguredDaemon(config, state, service, log, () => "debug");
    const repair = options.repair === true;
    try {
      return await daemon.audit({
        repair,
        byPerson: repair,
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

/** One line a finding, then the sum. */
export function auditText({ sources, findings, unnamed, foreign, left }: AuditReport): string {
  const shown = findings.slice(0, SHOWN);
  const lines = shown.map(findingLine);
  const more = findings.length - shown.length + unnamed;
  if (more > 0) lines.push(`… and ${thousands(more)} more`);
  for (const { path, resources, lost, listed } of sources) {
    if (!listed)
      lines.push(`${path}: nothing to compare yet, for the service has not told the collection's id`);
    else lines.push(`${path}: ${counted(resources, "resource")} compared`);
    if (lost !== null) lines.push(`${path}: ${lost} Nothing is sent; \`kbsync approve\` sends them again.`);
  }
  if (foreign > 0) lines.push(`${counted(foreign, "resource")} of others there, left alone`);
  const found = findings.filter(({ kind }) => kind !== "foreign").length + unnamed;
  lines.push(
    found === 0
      ? "all agree"
      : `${counted(found, "differs", "differ")}, ${thousands(found - left)} of them put right`,
  );
  return `${lines.join("\n")}\n`;
}

function findingLine({ kind, path, title, what, repaired }: Finding): string {
  return `${kind.padEnd(8)} ${path === "" ? title : path}  (${what}${repaired ? "; put right" : ""})`;
}
