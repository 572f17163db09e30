import { type Command, InvalidArgumentError } from "commander";
import type { PaceState } from "../../wire/daemon-status.ts";
import { WAIT_SECONDS_MAX, type WaitAnswer } from "../../wire/daemon.ts";
import { locatedPath, openOperator, printJson } from "../state/ask.ts";
import { withFolder } from "./activity.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { paceWords } from "./status.ts";
import { visibleLine } from "../output/visible.ts";

interface WaitOptions extends CommonOptions {
  readonly embedded?: boolean;
  readonly timeout?: number;
  readonly json?: boolean;
}

/** `kbsync wait [PATH]`: returns when searches find what is on disk now. */
export function addWait(program: Command, context: Context): void {
  program
    .command("wait")
    .description(
      "wait until searches find everything, or one file or folder, by its words as it is on disk now",
    )
    .argument(
      "[path]",
      "a file, or a folder with all below it (default: everything but images and scans whose text is still being recognised)",
    )
    .option("--embedded", "wait until it is found by meaning too")
    .option("-t, --timeout <seconds>", "give up after this time, with exit code 124", seconds)
    .addOption(jsonOption())
    .action(async (path: string | undefined, options: WaitOptions) => wait(context, path, options));
}

async function wait(context: Context, path: string | undefined, options: WaitOptions): Promise<void> {
  const operator = openOperator(context, options);
  const result = await operator.need(
    "wait",
    {
      ...locatedPath(operator, path),
      ...(options.timeout !== undefined && { timeoutSeconds: options.timeout }),
      ...(options.embedded === true && { embedded: "true" }),
    },
    // Shows a waiting person what takes so long; a script needs no progress.
    ({ waiting, embedding = 0, service }) => {
      if (service === undefined || !context.stderrIsTTY) return;
      context.stderr.write(stillWords(waiting, embedding, service));
    },
  );
  if (result.unknown === true)
    context.stderr.write(`kbsync: ${path ?? ""} does not exist, and was never synced\n`);
  if (options.json === true) printJson(context, result);
  else if (result.end === "searchable") {
    // A script reads the exit code, and its standard output stays empty.
    if (context.stderrIsTTY && context.isQuiet !== true) context.stderr.write(foundWords(path, result));
  } else {
    const reasons = result.reasons.map((reason) => withFolder(reason, operator.config.sources.length));
    context.stdout.write(waitWords({ ...result, reasons }));
  }
  context.exitCode = EXIT_OF[result.end];
}

const EXIT_OF = { searchable: EXIT.done, troubled: EXIT.filesFailed, timeout: EXIT.timeout } as const;

/** `kbsync: waiting for 3 files; the service does not answer: …`. */
function stillWords(waiting: number, embedding: number, service: PaceState): string {
  const files = waiting === 0 ? "scanning the folder" : `waiting for ${counted(waiting, "file")}`;
  const what = embedding === 0 ? files : `waiting for the vectors of ${counted(embedding, "document")}`;
  return `kbsync: ${what}; ${paceWords(service)}\n`;
}

/** `kbsync: everything is searchable as it is on disk`; empty for a path that was reported as unknown. */
function foundWords(path: string | undefined, { unknown, reading, readingPaths }: WaitAnswer): string {
  if (unknown === true) return "";
  const what = path === undefined ? "everything" : visibleLine(path);
  const but = reading === 0 ? "" : `, but for ${picturesWords({ reading, readingPaths })}`;
  return `kbsync: ${what} is searchable as it is on disk${but}\n`;
}

/** `pictures of 2 files still being read: a.png, b.png`. */
function picturesWords({ reading, readingPaths }: Pick<WaitAnswer, "reading" | "readingPaths">): string {
  const shown = readingPaths.slice(0, READING_SHOWN).map(visibleLine).join(", ");
  const more = reading > READING_SHOWN ? ` and ${thousands(reading - READING_SHOWN)} more` : "";
  return `pictures of ${counted(reading, "file")} still being read: ${shown}${more}`;
}

/** Files being read that are named. */
const READING_SHOWN = 5;

/** How a wait ended that did not find everything searchable, for a person. */
function waitWords({ end, reasons, troubled, embedding, service, ...pictures }: WaitAnswer): string {
  const lines = reasons.map(
    ({ source, path, message }) => `${visibleLine(path === "" ? source : path)}: ${visibleLine(message)}\n`,
  );
  if (end === "timeout") {
    const files =
      troubled === 0
        ? "the folder was still being scanned"
        : `${counted(troubled, "file is", "files are")} not searchable yet`;
    const left =
      embedding === 0
        ? files
        : `${counted(embedding, "document is", "documents are")} not found by meaning yet`;
    const why = service.kind === "open" ? "" : `; ${paceWords(service)}`;
    return `timed out: ${left}${why}\n${lines.join("")}`;
  }
  const more = troubled - reasons.length;
  if (more > 0) lines.push(`and ${thousands(more)} more (\`kbsync status --failed --waiting\` lists them)\n`);
  if (pictures.reading > 0) lines.push(`${picturesWords(pictures)}\n`);
  return lines.join("");
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= WAIT_SECONDS_MAX) return value;
  throw new InvalidArgumentError(`expected seconds, more than 0 and up to ${WAIT_SECONDS_MAX}`);
}
