import {
  chmodSync,
  chownSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { CONFIG_FILE_NAME, parseConfig } from "../../config/config-file.ts";
import { loadConfig } from "../../config/load.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";

/** An editor saves once; several changes in a row come from another program. */
const TRIES = 3;

/**
 * Replaces a configuration file with what `edit` makes of its text, which is called again if somebody else changed the file
 * meanwhile. Writes nothing if `edit` changes nothing. Throws what `edit` and `writeConfig` throw, and `config_changed`.
 */
export function editConfig(
  file: string,
  context: Pick<Context, "cwd" | "env">,
  edit: (text: string) => string,
): void {
  for (let tries = 1; ; tries += 1) {
    const before = readConfig(file);
    const after = edit(before);
    if (after === before || writeConfig(file, after, context, before)) return;
    if (tries === TRIES) {
      throw new KbsyncError(`${file} is being changed by another program`, {
        code: "config_changed",
        subject: file,
        retryable: true,
        hint: "Nothing was written. Try again when it is saved.",
      });
    }
  }
}

/**
 * Replaces a configuration file atomically, with the owner and mode that it has. The text is first read from a temporary file as
 * every command reads it. Does nothing and returns false if the file no longer has the text `expected`. Throws what reading
 * throws, and `config_unreadable` if the file cannot be written.
 */
export function writeConfig(
  named: string,
  text: string,
  { cwd, env }: Pick<Context, "cwd" | "env">,
  expected?: string,
): boolean {
  parseConfig(text, named);
  const before = statSync(named, { throwIfNoEntry: false });
  // A link stays a link.
  const file = before === undefined ? named : realpathSync(named);
  const beside = join(dirname(file), `.${process.pid}.${CONFIG_FILE_NAME}.new`);
  try {
    writeFileSync(beside, text, { flag: "wx", flush: true });
    if (before !== undefined) {
      chmodSync(beside, before.mode & 0o777);
      if (process.geteuid?.() === 0) chownSync(beside, before.uid, before.gid);
    }
    loadConfig({ file: beside, cwd, env });
    const isExpected = expected === undefined || readConfig(file) === expected;
    if (isExpected) renameSync(beside, file);
    else rmSync(beside);
    return isExpected;
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

function readConfig(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new KbsyncError(`cannot read the configuration ${file}: ${messageOf(error)}`, {
      code: codeOf(error) === "ENOENT" ? "config_not_found" : "config_unreadable",
      subject: file,
      cause: error,
    });
  }
}
