import { chmodSync, chownSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CONFIG_FILE_NAME, loadConfig, parseConfig } from "../../config/load.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";

/**
 * Replaces a configuration file atomically, with the owner and mode that it has. The text is first read from a temporary file as
 * every command reads it. Throws what reading throws, and `config_unreadable` if the file cannot be written.
 */
export function writeConfig(named: string, text: string, { cwd, env }: Pick<Context, "cwd" | "env">): void {
  parseConfig(text, named);
  const before = statSync(named, { throwIfNoEntry: false });
  // A link stays one.
  const file = before === undefined ? named : realpathSync(named);
  const beside = join(dirname(file), `.${process.pid}.${CONFIG_FILE_NAME}.new`);
  try {
    writeFileSync(beside, text, { flag: "wx", flush: true });
    if (before !== undefined) {
      chmodSync(beside, before.mode & 0o777);
      if (process.geteuid?.() === 0) chownSync(beside, before.uid, before.gid);
    }
    loadConfig({ file: beside, cwd, env });
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    if (error instanceof KbsyncError || codeOf(error) === "ENOSPC") throw error;
    throw new KbsyncError(`cannot write the configuration ${file}: ${messageOf(error)}`, {
      code: "config_unreadable",
      subject: file,
      cause: error,
    });
  }
}
