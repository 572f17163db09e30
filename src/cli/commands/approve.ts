import type { Command } from "commander";
import { unknownSource } from "../../sync/scan/disk/source-path.ts";
import type { Approval, SourceStatus } from "../../wire/daemon-status.ts";
import { sourceMissing } from "../../sync/operate/approve.ts";
import { readStatus } from "../../sync/operate/status.ts";
import { absoluteFolder, openOperator, type Operator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { counted } from "../../lib/counted.ts";

interface ApproveOptions extends CommonOptions {
  readonly token?: string;
  readonly json?: boolean;
}

/** `kbsync approve --token TOKEN`: a person agrees to what is held, as it was shown; without the token it is shown. */
export function addApprove(program: Command, context: Context): void {
  program
    .command("approve")
    .description(
      "list deletes and replaced folders that wait for approval, each with a token; with --token, approve one of them",
    )
    .argument("[source]", "folder of a source (default: all sources)")
    .option(
      "-t, --token <token>",
      "approve what was listed with this token; a running daemon acts at once, otherwise the next sync",
    )
    .addOption(jsonOption())
    .action(async (source: string | undefined, options: ApproveOptions) => approve(context, source, options));
}

async function approve(context: Context, source: string | undefined, options: ApproveOptions): Promise<void> {
  const operator = openOperator(context, options);
  const where = absoluteFolder(context, source);
  const { token } = options;
  if (token === undefined) {
    const held = await heldIn(operator, where.folder);
    if (options.json === true) printJson(context, { held });
    else context.stdout.write(held.length === 0 ? haltedWords(haltedIn(operator)) : heldWords(held));
    // Nobody should believe that something was approved.
    if (held.length > 0) context.exitCode = EXIT.held;
    return;
  }
  const done = await operator.act("approve", { token, ...where });
  const approved = done?.answer.approved ?? [];
  if (options.json === true) printJson(context, { approved });
  else
    context.stdout.write(
      approved.length === 0 ? haltedWords(haltedIn(operator)) : approveWords(approved, done?.isLive === true),
    );
}

/**
 * What waits for approval in all sources, or in that of a folder, which may have left the configuration. Throws `source_unknown`,
 * and `source_missing` for a missing folder.
 */
async function heldIn(operator: Operator, folder: string | undefined): Promise<readonly Approval[]> {
  const status = (await operator.ask("status", {})) ?? readStatus(operator.config.stateDir, 0);
  if (status === undefined) return [];
  const { sources, removed } = status;
  const approvals = [...sources, ...removed].flatMap(({ approval }) => approval ?? []);
  if (folder === undefined) return sources.flatMap(({ approval }) => approval ?? []);
  const found = approvals.filter((approval) => approval.source === folder);
  const source = sources.find(({ path }) => path === folder);
  if (found.length > 0 || source?.halted === false) return found;
  if (source !== undefined) throw sourceMissing(folder, source.holdReason ?? "");
  throw unknownSource(
    folder,
    sources.map(({ path }) => path),
  );
}

type Halted = Pick<SourceStatus, "path" | "holdReason" | "remedy">;

function haltedIn({ config }: Operator): readonly Halted[] {
  return readStatus(config.stateDir, 0)?.sources.filter(({ halted }) => halted) ?? [];
}

/** The words when nothing can be approved; names halted sources, because nobody can approve a missing folder. */
export function haltedWords(sources: readonly Halted[]): string {
  if (sources.length === 0) return "nothing is held\n";
  return sources
    .map(({ path, holdReason, remedy }) => {
      const what = remedy === null ? "" : ` (${remedy})`;
      return `nothing to approve: ${path}: ${holdReason ?? "halted"}${what}\n`;
    })
    .join("");
}

/** Held deletes without approval, a line each. */
export function heldWords(held: readonly Approval[]): string {
  if (held.length === 0) return "nothing is held\n";
  return held
    .map((each) => {
      const what = each.held === 0 ? "" : `, ${counted(each.held, "delete")}`;
      return `held: ${each.source}${what} (${each.reason}); \`kbsync approve --token ${each.token}\` approves it\n`;
    })
    .join("");
}

/** The approved deletes, one line each. A halted source without waiting deletes continues. */
export function approveWords(approvals: readonly Omit<Approval, "token">[], isRunning: boolean): string {
  if (approvals.length === 0) return "nothing is held\n";
  const lines = approvals.map(({ source, held, reason }) => {
    const what = held === 0 ? "" : `, ${counted(held, "delete")}`;
    const verb =
      held === 0 ? (isRunning ? "continues" : "continues with it") : `deletes ${held === 1 ? "it" : "them"}`;
    const when = isRunning ? `the daemon ${verb} now` : `the next sync ${verb}`;
    // The question has been answered.
    const why = reason.replace(/; is a disk not mounted\?$/, "");
    return `approved: ${source}${what} (${why}); ${when}\n`;
  });
  return lines.join("");
}
