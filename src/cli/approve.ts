import { resolve } from "node:path";
import type { Command } from "commander";
import { loadConfig } from "../config/load.ts";
import { approveHeld } from "../sync/approve.ts";
import type { Context } from "./context.ts";
import { type CommonOptions, configRequest } from "./options.ts";
import { thousands } from "./progress.ts";

interface ApproveOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync approve [SOURCE]`: a person agrees to the deletes that are held. */
export function addApprove(program: Command, context: Context): void {
  program
    .command("approve")
    .description("agree to the deletes that are held; the next pass does them (stop a running daemon first)")
    .argument("[source]", "folder of one source (default: all)")
    .option("--json", "print what was agreed to as JSON")
    .action((source: string | undefined, options: ApproveOptions) => approve(context, source, options));
}

function approve(context: Context, source: string | undefined, options: ApproveOptions): void {
  const config = loadConfig(configRequest(context, options));
  const approvals = approveHeld(
    config.stateDir,
    source === undefined ? undefined : resolve(context.cwd, source),
  );
  if (options.json === true) {
    context.stdout.write(`${JSON.stringify({ approved: approvals }, undefined, 2)}\n`);
    return;
  }
  if (approvals.length === 0) context.stdout.write("nothing is held\n");
  for (const { source: folder, held, reason } of approvals) {
    context.stdout.write(
      `approved: ${folder}, ${thousands(held)} deletes (${reason}); the next pass does them\n`,
    );
  }
}
