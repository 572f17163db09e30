import type { Command } from "commander";
import { type Approval, approveHeld } from "../sync/approve.ts";
import { absolute, openOperator, printJson } from "./ask.ts";
import type { Context } from "./context.ts";
import type { CommonOptions } from "./options.ts";
import { counted } from "./progress.ts";

interface ApproveOptions extends CommonOptions {
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
    .option("--json", "print what was agreed to as JSON")
    .action(async (source: string | undefined, options: ApproveOptions) => approve(context, source, options));
}

async function approve(context: Context, source: string | undefined, options: ApproveOptions): Promise<void> {
  const operator = openOperator(context, options);
  const where = absolute("folder", context, source);
  const told = await operator.ask({ command: "approve", ...where });
  const approvals = told?.approved ?? approveHeld(operator.config.stateDir, where.folder);
  if (options.json === true) {
    printJson(context, { approved: approvals });
    return;
  }
  context.stdout.write(approveWords(approvals, told !== undefined));
}

/** What was agreed to, a line each; where no delete waits, a source goes on that stood still. */
export function approveWords(approvals: readonly Approval[], isRunning: boolean): string {
  if (approvals.length === 0) return "nothing is held\n";
  const lines = approvals.map(({ source, held, reason }) => {
    const what = held === 0 ? "" : `, ${counted(held, "delete")}`;
    const deed =
      held === 0 ? (isRunning ? "goes on" : "goes on there") : `does ${held === 1 ? "it" : "them"}`;
    const when = isRunning ? `the daemon ${deed} now` : `the next pass ${deed}`;
    return `approved: ${source}${what} (${reason}); ${when}\n`;
  });
  return lines.join("");
}
