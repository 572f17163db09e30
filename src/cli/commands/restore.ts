import { resolve } from "node:path";
import type { Command } from "commander";
import type { RestoreReport } from "../../backup/restore.ts";
import { loadConfig } from "../../config/load.ts";
import { printJson } from "../state/ask.ts";
import { megabytes, namedLines } from "./backup.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { type CommonOptions, configRequest, jsonOption } from "../output/options.ts";
import { lockState } from "../state/pending-restore.ts";
import { counted } from "../../lib/counted.ts";
import type { RestoredKeys } from "../state/restored-state.ts";
import { makeStateFolder } from "../state/state-folder.ts";

interface RestoreCommandOptions extends CommonOptions {
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `kbsync restore FROM`: replaces a state folder with a backup. */
export function addRestore(program: Command, context: Context): void {
  program
    .command("restore")
    .description("replace the state folder with a backup, after checking all of it (stop kbsync first)")
    .argument("<from>", "a folder that `kbsync backup` made")
    .option("--force", "replace an existing state, and move it into a folder next to it")
    .addOption(jsonOption())
    .action(async (from: string, options: RestoreCommandOptions) => restore(context, from, options));
}

async function restore(context: Context, from: string, options: RestoreCommandOptions): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  // Loaded here, because no other command needs the code of the store.
  const [{ restoreBackup }, { checkStage, prepareStage }] = await Promise.all([
    import("../../backup/restore.ts"),
    import("../state/restored-state.ts"),
  ]);
  const state = makeStateFolder(config.stateDir);
  const lock = lockState(state.path);
  try {
    const report = restoreBackup({
      from: resolve(context.cwd, from),
      stateDir: state.path,
      force: options.force === true,
      now: new Date(context.nowMs()),
      signal: context.signal,
      check: checkStage,
      prepare: (stage) => prepareStage(stage, state.path, context.nowMs()),
    });
    if (options.json === true) {
      const { manifest, prepared: keys, ...rest } = report;
      printJson(context, { ...rest, madeAt: manifest.madeAt, keys });
    } else context.stdout.write(restoreText(report));
    // The same exit status as a backup that leaves damaged files out.
    context.exitCode = report.notRestored.length === 0 ? EXIT.done : EXIT.filesFailed;
  } finally {
    lock.release();
  }
}

/** The result for a person. */
export function restoreText(report: RestoreReport<RestoredKeys | null>): string {
  const { manifest, notRestored, files, bytes, previousState, prepared: keys } = report;
  const lines = [`restored ${counted(files, "file")}, ${megabytes(bytes)}, of ${manifest.madeAt}`];
  if (notRestored.length > 0) {
    lines.push(
      `${counted(notRestored.length, "file")} not restored, damaged or missing in the backup:`,
      ...namedLines("not restored", notRestored),
    );
  }
  if (previousState !== null) lines.push(`the previous state is in ${previousState}`);
  if (manifest.missing.length > 0)
    lines.push(
      `${counted(manifest.missing.length, "file was", "files were")} missing already when the backup was made`,
    );
  if (keys !== null) lines.push(...keyLines(keys));
  lines.push("Start kbsync: it first compares the folders with the service, then sends what has changed.");
  return `${lines.join("\n")}\n`;
}

function keyLines({ problem, revoked, endEarlier, narrowed, valid }: RestoredKeys): string[] {
  if (problem !== null) {
    if (valid === 0) return [];
    return [
      `keys that were revoked after the backup was made are valid again, for ${problem}`,
      "`kbsync key list` (--account NAME) shows the keys of the backup, `kbsync key revoke ID` ends one.",
    ];
  }
  const withdrawn = [
    ...(revoked > 0 ? [`${counted(revoked, "key")} revoked`] : []),
    ...(endEarlier > 0 ? [`${counted(endEarlier, "key")} with an earlier end`] : []),
    ...(narrowed > 0 ? [`${counted(narrowed, "key")} with fewer scopes`] : []),
  ];
  if (withdrawn.length === 0) return [];
  return [`what was withdrawn since the backup was made stays withdrawn: ${withdrawn.join(", ")}`];
}
