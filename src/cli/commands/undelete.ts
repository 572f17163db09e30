import { type Command, InvalidArgumentError } from "commander";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import type { PutBack, TrashedText } from "../../wire/daemon-files.ts";
import { FILES_MAX } from "../../wire/daemon.ts";
import { locatedPath, nothingSynced, openOperator, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { thousands } from "../../lib/counted.ts";
import { localTime } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";

interface UndeleteOptions extends CommonOptions {
  readonly list?: boolean;
  readonly at?: number;
  readonly json?: boolean;
}

/** `kbsync undelete PATH`: restores the saved text of a deleted file. */
export function addUndelete(program: Command, context: Context): void {
  program
    .command("undelete")
    .description("restore the saved text of a deleted file, or of all files below a folder")
    .argument("[path]", "path of the deleted file or folder (with --list: default everything)")
    .option("-l, --list", "only list the saved texts")
    .option(
      "--at <time>",
      "restore the text saved at this time, as --list shows it (default: the newest)",
      time,
    )
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: UndeleteOptions) => run(context, path, options));
}

async function run(context: Context, path: string | undefined, options: UndeleteOptions): Promise<void> {
  const operator = openOperator(context, options);
  const where = locatedPath(operator, path);
  if (options.list === true) {
    const query = { ...where, state: "deleted", limit: FILES_MAX } as const;
    const texts = (await operator.act("files", query))?.answer.deleted ?? [];
    if (options.json === true) printJson(context, { texts });
    else context.stdout.write(listText(texts, context.cwd));
    return;
  }
  if (where.path === undefined) {
    throw new KbsyncError("undelete needs the path of a file or folder", {
      code: "usage",
      hint: "`kbsync undelete --list` lists the saved texts.",
    });
  }
  // Not done by the daemon, which as a service may only read the folder: the files belong to the person.
  const request = { path: where.path, ...(options.at !== undefined && { atMs: options.at }) };
  const done = await operator.actAlone("undelete", request);
  if (done === undefined) throw nothingSynced(operator.config.stateDir);
  if (options.json === true) printJson(context, done);
  else context.stdout.write(resultText(done.files, context.cwd));
  if (done.files.some(({ outcome }) => outcome !== "restored")) context.exitCode = EXIT.filesFailed;
}

/** One line per text, newest first. */
function listText(texts: readonly TrashedText[], cwd: string): string {
  if (texts.length === 0) return "no text is saved\n";
  return texts
    .map(
      (text) =>
        `${localTime(Date.parse(text.deletedAt))}  ${thousands(text.sizeBytes).padStart(12)} bytes  ${shortest(text.path, cwd)}${noteOf(text)}\n`,
    )
    .join("");
}

function resultText(results: readonly PutBack[], cwd: string): string {
  return results
    .map((result) => {
      const path = shortest(result.path, cwd);
      if (result.outcome === "restored")
        return `restored  ${path}  (deleted ${localTime(Date.parse(result.deletedAt))})${noteOf(result)}\n`;
      if (result.outcome === "exists")
        return `left      ${path}: there is a file of that name; move it away first\n`;
      return `failed    ${path}: ${result.reason}\n`;
    })
    .join("");
}

/** The differences from the deleted document. */
function noteOf({ isExact, kind }: TrashedText): string {
  if (isExact) return "";
  if (kind === "link") return "  (a new shortcut to its address)";
  return "  (its text as UTF-8, as the service had it: not the bytes of the deleted file)";
}

function shortest(path: string, cwd: string): string {
  return visibleLine(pathBelow(cwd, path) || path);
}

/** Parses a point in time; milliseconds since 1970. One without a fraction stands for the whole second, as --list shows it. */
function time(text: string): number {
  const atMs = Date.parse(text) + (text.includes(".") ? 0 : 999);
  if (Number.isNaN(atMs)) throw new InvalidArgumentError("expected a time such as 2026-11-21T16:30:00Z");
  return atMs;
}
