import type { Command } from "commander";
import type { SkippedFile, TroubledFile } from "../../wire/daemon-files.ts";
import { FILES_MAX } from "../../wire/daemon.ts";
import type { Context } from "../output/context.ts";
import type { CommonOptions } from "../output/options.ts";
import { thousands } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";
import { unbroken } from "../terminal/prose.ts";
import { locatedPath, nothingSynced, openOperator, printJson } from "../state/ask.ts";

/** The listed states; those that need a person come first. */
const STATES = ["held", "failed", "waiting", "skipped"] as const;
type ListedState = (typeof STATES)[number];

interface LsOptions extends CommonOptions, Partial<Record<ListedState, boolean>> {
  readonly json?: boolean;
}

/** A file that is not searchable as it is on disk, with the reason or the rule. */
interface Listed {
  readonly state: ListedState;
  readonly source: string;
  readonly path: string;
  readonly reason: string;
}

/** `kbsync ls [PATH]`: lists the files that are not searchable as they are on disk, each with its reason. */
export function addLs(program: Command, context: Context): void {
  program
    .command("ls")
    .description("list the files that are not up to date in the knowledge base, each with the reason")
    .argument("[path]", "a file, or a folder with all below it (default: everything)")
    .option("--held", "deletes that wait for kbsync approve")
    .option("--failed", "files that could not be read, or that the service refused")
    .option("--waiting", "files that will be tried again")
    .option("--skipped", "files that are left out, with the rule")
    .option("--json", "print the files as JSON")
    .action(async (path: string | undefined, options: LsOptions) => list(context, path, options));
}

async function list(context: Context, path: string | undefined, options: LsOptions): Promise<void> {
  const operator = openOperator(context, options);
  const chosen = STATES.filter((state) => options[state] === true);
  const query = { ...locatedPath(operator, path), limit: FILES_MAX };
  const files: Listed[] = [];
  for (const state of chosen.length === 0 ? STATES : chosen) {
    const done =
      state === "skipped"
        ? await operator.act("skipped", query)
        : await operator.act("troubled", { ...query, state });
    if (done === undefined) throw nothingSynced(operator.config.stateDir);
    files.push(...done.answer.files.map((file) => listed(state, file)));
  }
  if (options.json === true) {
    printJson(context, { files });
    return;
  }
  const sources = new Set(files.map(({ source }) => source));
  context.stdout.write(files.length === 0 ? noneWords(chosen) : linesOf(files, sources.size > 1));
  if (files.length >= FILES_MAX)
    context.stderr.write(`kbsync: at most ${thousands(FILES_MAX)} of each kind are listed; name a folder\n`);
}

/** The meaning of an empty list. */
function noneWords(chosen: readonly ListedState[]): string {
  const [state] = chosen;
  if (state === undefined) return "every file is searchable as it is on disk (`kbsync status` counts them)\n";
  if (chosen.length > 1) return "there are none of these\n";
  return `${NONE_WORDS[state]}\n`;
}

const NONE_WORDS: Readonly<Record<ListedState, string>> = {
  held: "no deletes are held",
  failed: "no files failed",
  waiting: "no files wait for another try",
  skipped: "no files are skipped",
};

function listed(state: ListedState, file: TroubledFile | SkippedFile): Listed {
  const reason = "reason" in file ? file.reason : file.message;
  return { state, source: file.source, path: file.path, reason };
}

/** Absolute paths if there are several sources, so that each can be pasted into another command. */
function linesOf(files: readonly Listed[], isAbsolute: boolean): string {
  return files
    .map(({ state, source, path, reason }) => {
      const shown = isAbsolute ? `${source}/${path}` : path;
      return `${state.padEnd(7)}  ${unbroken(visibleLine(shown))}: ${visibleLine(reason)}\n`;
    })
    .join("");
}
