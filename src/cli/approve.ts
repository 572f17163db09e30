import type { Command } from "commander";
import { approveHeld } from "../sync/approve.ts";
import { absolute, openOperator, printJson } from "./ask.ts";
import type { Context } from "./context.ts";
import type { CommonOptions } from "./options.ts";
import { thousands } from "./progress.ts";

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
  if (approvals.length === 0) context.stdout.write("nothing is held\n");
  const when = told === undefined ? "the next pass does them" : "the daemon does them now";
  for (const { source: folder, held, reason } of approvals) {
    context.stdout.write(`approved: ${folder}, ${thousands(held)} deletes (${reason}); ${when}\n`);
  }
}
