import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Command } from "commander";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { kindOfName } from "../../sync/document/kinds.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { wholeNumber } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { lastResults } from "../results/last-results.ts";

interface OpenOptions {
  readonly print?: boolean;
}

/** Editors that take a line as `+12` before the file. */
const PLUS_LINE: ReadonlySet<string> = new Set(
  "vi vim nvim view nano pico emacs emacsclient micro kak joe jed mg ne less".split(" "),
);
/** Editors that take `FILE:LINE` after an option. */
const GOTO: ReadonlySet<string> = new Set(["code", "codium", "cursor", "windsurf"]);

/** Programs that open a file with the desktop's default application. */
const OPENERS = { darwin: "open", others: "xdg-open" } as const;

/** `kbsync open N`: the file of a result of the last search. */
export function addOpen(program: Command, context: Context): void {
  program
    .command("open")
    .description(
      "open the file of a result of your last search: text in $VISUAL or $EDITOR, anything else as the desktop does",
    )
    .argument("[number]", "number of the result", wholeNumber(1, 1000), 1)
    .option("--print", "print its path and line, and open nothing")
    .action(async (number: number, options: OpenOptions) => open(context, number, options));
}

async function open(context: Context, number: number, options: OpenOptions): Promise<void> {
  const { path, line } = resultOf(context, number);
  if (options.print === true) {
    context.stdout.write(`${visibleLine(path)}${line === null ? "" : `:${line}`}\n`);
    return;
  }
  const command = commandFor(path, line, context.env, context.stdout.isTTY);
  const [file = "", ...args] = command;
  // An editor needs the terminal. The messages of a desktop's opener about missing browsers help nobody.
  const isOpener = file === OPENERS.darwin || file === OPENERS.others;
  const child = spawn(file, args, { stdio: isOpener ? "ignore" : "inherit", env: context.env });
  const code = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => resolve(status ?? 1));
  }).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new KbsyncError(`${file} is not installed`, {
      code: "usage",
      hint: `Set $EDITOR, or print the path: \`kbsync open ${number} --print\`.`,
    });
  });
  if (code === 0) return;
  if (!isOpener) {
    context.exitCode = EXIT.filesFailed;
    return;
  }
  throw new KbsyncError(`no program on this machine opens ${path}`, {
    code: "not_opened",
    subject: path,
    hint: `\`kbsync open ${number} --print\` prints its path; $EDITOR names a program for texts.`,
  });
}

function resultOf(context: Context, number: number): { readonly path: string; readonly line: number | null } {
  const results = lastResults(context.env);
  if (results === undefined || results.length === 0) {
    throw new KbsyncError("there are no search results to open", {
      code: "usage",
      hint: "Search first: `kbsync search WORDS`.",
    });
  }
  const result = results[number - 1];
  if (result === undefined) {
    const many = results.length === 1 ? "one result" : `${results.length} results`;
    throw new KbsyncError(`the last search had ${many}`, { code: "usage" });
  }
  const { path, line } = result;
  if (path === null) throw new KbsyncError(`result ${number} has no file on this machine`, { code: "usage" });
  if (!existsSync(path)) {
    throw new KbsyncError(`${path} does not exist any more`, {
      code: "usage",
      subject: path,
      hint: "It was renamed or deleted after the search. Search again.",
    });
  }
  return { path, line };
}

/** Returns the program that opens a file, with its arguments. Pure. */
export function commandFor(
  path: string,
  line: number | null,
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
  platform: NodeJS.Platform = process.platform,
): readonly string[] {
  const editor = [env["VISUAL"], env["EDITOR"]].find((each) => (each ?? "").trim() !== "")?.trim();
  const isText = kindOfName(basename(path)).kind === "content";
  if (editor === undefined || !isText || !isTerminal)
    return [platform === "darwin" ? OPENERS.darwin : OPENERS.others, path];
  const words = editor.split(/\s+/);
  const name = basename(words[0] ?? "");
  if (line === null) return [...words, path];
  if (PLUS_LINE.has(name)) return [...words, `+${line}`, path];
  return GOTO.has(name) ? [...words, "--goto", `${path}:${line}`] : [...words, path];
}
