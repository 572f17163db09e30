import type { Command } from "commander";
import { readStatus } from "../../sync/operator/status.ts";
import { openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { agreementWords } from "./status.ts";
import { unbroken } from "../terminal/prose.ts";
import { removedLine } from "./follow.ts";

interface ListOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync list`: the synced folders, and former ones that still have documents. */
export function addList(program: Command, context: Context): void {
  program
    .command("list")
    .description(
      "list the synced folders with tier and owner, and folders that are no longer synced but have documents",
    )
    .option("--json", "print them as JSON")
    .action(async (options: ListOptions) => list(context, options));
}

async function list(context: Context, options: ListOptions): Promise<void> {
  const operator = openOperator(context, options);
  const ledger = readStatus(operator.config.stateDir, 0);
  const live = await operator.ask("status", {});
  const known = live?.sources ?? ledger?.sources ?? [];
  const sources = operator.sources().map(({ absolutePath, collection, ownerId }) => {
    const status = known.find(({ path }) => path === absolutePath);
    return { path: absolutePath, tier: collection, ownerId, status: status ?? null };
  });
  const removed = live?.removed ?? ledger?.removed ?? [];
  if (options.json === true) {
    const folders = sources.map(({ path, tier, ownerId, status }) => ({
      path,
      tier,
      ownerId,
      files: status?.files ?? 0,
      inAgreement: status?.inAgreement ?? 0,
    }));
    printJson(context, { sources: folders, removed });
    return;
  }
  const lines = [
    ...sources.map(({ path, tier, ownerId, status }) => {
      const words = status === null ? "not synced yet" : agreementWords(status);
      return `${unbroken(visibleLine(path))}\n  ${tier}, owner ${ownerId}: ${words}\n`;
    }),
    ...removed.map((source) => `${unbroken(visibleLine(source.path))}\n  ${removedLine(source)}\n`),
  ];
  context.stdout.write(
    lines.length === 0 ? "no folder is synced: `kbsync up FOLDER` syncs one\n" : lines.join(""),
  );
}
