import type { Command } from "commander";
import { type Approval, approveHeld, heldNow } from "../sync/approve.ts";
import { readStatus, type SourceStatus } from "../sync/status.ts";
import { absolute, openOperator, printJson } from "./ask.ts";
import type { Context } from "./context.ts";
import type { CommonOptions } from "./options.ts";
import { counted } from "./progress.ts";

interface ApproveOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** `kbsync approve [SOURCE]`: a person agrees to what is held. */
export function addApprove(program: Command, context: Context): void {
  program
    .command("approve")
    .description(
      "agree to the deletes that are held and to a folder that is another one than before; a running daemon does them at once, else the next pass",
    )
    .argument("[source]", "folder of one source (default: all)")
    .option("-n, --dry-run", "tell what is held and would be deleted, and agree to nothing")
    .option("--json", "print what was agreed to as JSON")
    .action(async (source: string | undefined, options: ApproveOptions) => approve(context, source, options));
}

async function approve(context: Context, source: string | undefined, options: ApproveOptions): Promise<void> {
  const operator = openOperator(context, options);
  const where = absolute("folder", context, source);
  const { stateDir } = operator.config;
  if (options.dryRun === true) {
    // The daemon writes down what it holds before anybody could read of it here.
    const held = heldNow(stateDir, where.folder);
    if (options.json === true) printJson(context, { held });
    else context.stdout.write(held.length === 0 ? haltedWords(haltedIn(stateDir)) : heldWords(held));
    return;
  }
  const told = await operator.ask({ command: "approve", ...where });
  const approvals = told?.approved ?? approveHeld(stateDir, where.folder);
  if (options.json === true) {
    printJson(context, { approved: approvals });
    return;
  }
  context.stdout.write(
    approvals.length === 0 ? haltedWords(haltedIn(stateDir)) : approveWords(approvals, told !== undefined),
  );
}

type Halted = Pick<SourceStatus, "path" | "holdReason" | "remedy">;

function haltedIn(stateDir: string): readonly Halted[] {
  return readStatus(stateDir, 0)?.sources.filter(({ halted }) => halted) ?? [];
}

/** Where there is nothing to agree to: sources whose folder is away, for to that nobody can agree. */
export function haltedWords(sources: readonly Halted[]): string {
  if (sources.length === 0) return "nothing is held\n";
  return sources
    .map(({ path, holdReason, remedy }) => {
      const what = remedy === null ? "" : ` (${remedy})`;
      return `nothing to agree to: ${path}: ${holdReason ?? "halted"}${what}\n`;
    })
    .join("");
}

/** What is held and nobody has agreed to, a line each. */
export function heldWords(held: readonly Approval[]): string {
  if (held.length === 0) return "nothing is held\n";
  return held
    .map((each) => {
      const what = each.held === 0 ? "" : `, ${counted(each.held, "delete")}`;
      return `held: ${each.source}${what} (${each.reason}); nothing was agreed to: \`kbsync approve ${each.source}\` does\n`;
    })
    .join("");
}

/** What was agreed to, a line each; where no delete waits, a source goes on that stood still. */
export function approveWords(approvals: readonly Approval[], isRunning: boolean): string {
  if (approvals.length === 0) return "nothing is held\n";
  const lines = approvals.map(({ source, held, reason }) => {
    const what = held === 0 ? "" : `, ${counted(held, "delete")}`;
    const deed =
      held === 0 ? (isRunning ? "goes on" : "goes on there") : `does ${held === 1 ? "it" : "them"}`;
    const when = isRunning ? `the daemon ${deed} now` : `the next pass ${deed}`;
    // What was asked there has been answered.
    const why = reason.replace(/; is a disk not mounted\?$/, "");
    return `approved: ${source}${what} (${why}); ${when}\n`;
  });
  return lines.join("");
}
