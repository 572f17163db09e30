import { isatty } from "node:tty";
import { Command, CommanderError, Option } from "commander";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";
import type { Context } from "./output/context.ts";
import { completeCommands, invocationOf } from "./output/hint.ts";
import { EXIT, exitCodeOf } from "./output/exit-code.ts";
import { addAdd } from "./commands/add.ts";
import { addLog } from "./commands/activity.ts";
import { PRIORITY, writeError } from "./output/journal.ts";
import { addKey } from "./commands/key.ts";
import { logFormat, logLevel } from "./output/log.ts";
import { addApprove } from "./commands/approve.ts";
import { addAsk } from "./commands/question.ts";
import { addBackup } from "./commands/backup.ts";
import { addCompletion } from "./commands/completion.ts";
import { addConsole } from "./commands/console.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addErase } from "./commands/erase.ts";
import { addEval } from "./commands/eval.ts";
import { addChanges } from "./commands/changes.ts";
import { addList } from "./commands/list.ts";
import { addLs } from "./commands/ls.ts";
import { addFacets } from "./commands/facets.ts";
import { EXIT_WORDS } from "./manual/facts.ts";
import { openHangups } from "./systemd/hangups.ts";
import { addInit } from "./commands/init.ts";
import { addMcp } from "./commands/mcp.ts";
import { addPause, addResume } from "./commands/pause.ts";
import { addOpen } from "./commands/open.ts";
import { addRecover } from "./commands/recover.ts";
import { addRemove } from "./commands/remove.ts";
import { addRescan } from "./commands/rescan.ts";
import { addRestore } from "./commands/restore.ts";
import { addRetry } from "./commands/retry.ts";
import { addRun } from "./commands/run.ts";
import { addSearch } from "./commands/search.ts";
import { addServe } from "./commands/serve.ts";
import { addService } from "./systemd/service.ts";
import { addStatus } from "./commands/status.ts";
import { addSync } from "./commands/sync.ts";
import { addUndelete } from "./commands/undelete.ts";
import { addExamples } from "./manual/examples.ts";
import { addUp } from "./commands/up.ts";
import { addVerify } from "./commands/verify.ts";
import { addWait } from "./commands/wait.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { addWhy } from "./commands/why.ts";
import { useRunningInstance } from "./state/find-instance.ts";
import type { CommonOptions } from "./output/options.ts";
import { programVersion } from "./output/version.ts";
import { terminal } from "./output/terminal.ts";
import { wrappedProse } from "./terminal/prose.ts";
import { visible } from "./output/visible.ts";

/** Runs the program on its arguments (without node and script) and resolves with the exit status. Never rejects. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  const onSignal = (): void => {
    // A second signal does not wait for a clean end: the ledger survives that as it survives kill -9.
    if (stopping.signal.aborted) process.exit(EXIT.stopped);
    stopping.abort();
    setTimeout(cutOff, STOP_MS_MAX).unref();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  process.stdout.on("error", endOnClosedPipe);

  const hangups = openHangups(process);
  const complete = (text: string): string => completeCommands(text, context.invocation);
  const prose = (text: string): string =>
    isatty(2) ? wrappedProse(complete(text), process.stderr.columns ?? 80) : complete(text);
  const completeResult = (text: string): string => (context.isVerbatim === true ? text : complete(text));
  const context: Context = {
    stdout: {
      write: (text) => terminal.out(visible(completeResult(text))),
      draw: (text) => terminal.out(completeResult(text)),
      bar: (line) => terminal.bar(line),
      isTTY: isatty(1),
      get columns() {
        return process.stdout.columns ?? 80;
      },
      get rows() {
        return process.stdout.rows;
      },
    },
    stderr: { write: (text) => terminal.err(visible(prose(text))) },
    stderrIsTTY: isatty(2),
    env: process.env,
    cwd: process.cwd(),
    signal: stopping.signal,
    // A terminal that is closed hangs up: what was started there ends with it, and nobody reads its output.
    ...(!isatty(0) && !isatty(2) && { onHangup: hangups.listen, holdHangups: hangups.hold }),
    nowMs: Date.now,
    exitCode: EXIT.done,
  };
  try {
    await buildProgram(context, args).parseAsync(args, { from: "user" });
    return context.exitCode;
  } catch (error) {
    const { code, words } = endOf(error, stopping.signal);
    // A path with blanks could not be pasted if it were broken.
    const isWhole = error instanceof KbsyncError && /\s/.test(error.subject ?? "");
    writeError(isWhole ? complete(words) : prose(words));
    return code;
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

/**
 * A signal ends the program within ten seconds, the time that a service manager and a person have patience for. What
 * is cut off then is what a kill -9 would cut off, and is put right at the next start.
 */
const STOP_MS_MAX = 9500;

function cutOff(): void {
  writeError(
    "kbsync: what was under way took too long to end: the next start settles it\n",
    PRIORITY.warning,
  );
  process.exit(EXIT.stopped);
}

/** The program with all its commands; nothing runs before it parses a command line. `args` are quoted where a person has to choose. */
export function buildProgram(context: Context, args: readonly string[] = []): Command {
  const program = new Command("kbsync")
    .description(
      "Keeps a folder of documents and a knowledge base in exact agreement, and is the knowledge base where you have none.",
    )
    .version(programVersion())
    .exitOverride()
    .configureOutput({
      writeErr: (text) => writeError(text),
      // The prefix of all other errors.
      outputError: (text, write) => write(text.replace(/^error: /, "kbsync: ")),
    })
    .showHelpAfterError("(add --help for what there is)")
    .addHelpText(
      "after",
      `\nExit codes: ${EXIT_WORDS.map(([code, meaning]) => `${code} ${meaning}`).join(", ")}.`,
    );
  addUp(program, context);
  addRun(program, context);
  addServe(program, context);
  addService(program, context);
  addSync(program, context);
  addAdd(program, context);
  addRemove(program, context);
  addList(program, context);
  addStatus(program, context);
  addLog(program, context);
  addWait(program, context);
  addWhy(program, context);
  addConsole(program, context);
  addSearch(program, context);
  addLs(program, context);
  addFacets(program, context);
  addChanges(program, context);
  addAsk(program, context);
  addEval(program, context);
  addPause(program, context);
  addResume(program, context);
  addRescan(program, context);
  addRetry(program, context);
  addApprove(program, context);
  addUndelete(program, context);
  addErase(program, context);
  addVerify(program, context);
  addRecover(program, context);
  addKey(program, context);
  addWebhooks(program, context);
  addMcp(program, context);
  addOpen(program, context);
  addBackup(program, context);
  addRestore(program, context);
  addDoctor(program, context);
  addInit(program, context);
  addCompletion(program, context);
  program.hook("preAction", (_, command) => {
    const options = command.opts<CommonOptions & { readonly json?: boolean }>();
    setLog(context, options);
    context.invocation = invocationOf(context, options);
    context.isVerbatim = options.json === true || VERBATIM.has(command.name());
    useRunningInstance(context, command, args);
  });
  addCommonOptions(program);
  return program;
}

/** Adds the options that every command has, and its examples. */
function addCommonOptions(program: Command): void {
  for (const command of program.commands.flatMap((one) => (one.commands.length > 0 ? one.commands : [one]))) {
    addExamples(command, command.parent === program ? "" : `${command.parent?.name() ?? ""} `);
    command
      .exitOverride()
      .option(
        "-c, --config <file>",
        "configuration file (default: $KBSYNC_CONFIG, else ./kbsync.config.json)",
      )
      .option(
        "--state-dir <dir>",
        "folder for key, ledger and the service's data (before the configuration's)",
      )
      .option("-q, --quiet", "print results and errors only")
      .option("-v, --verbose", "log what is done in detail")
      .addOption(new Option("--log-format <format>", "format of log lines").choices(["text", "json"]));
  }
}

/** Applies the options of the log, which come before the environment. Throws `usage` for what there is not. */
function setLog(context: Context, { quiet, verbose, logFormat: format }: CommonOptions): void {
  const { env } = context;
  if (quiet === true) env["KBSYNC_LOG"] = "error";
  else if (verbose === true) env["KBSYNC_LOG"] = "debug";
  if (format !== undefined) env["KBSYNC_LOG_FORMAT"] = format;
  context.isQuiet = quiet === true;
  logLevel(env);
  logFormat(env);
}

/** Commands that print what documents hold. */
const VERBATIM: ReadonlySet<string> = new Set(["search", "ask", "eval", "mcp", "facets", "completion"]);

/** Exit status for what ended a command, after reporting it on standard error. */
export function endOf(
  error: unknown,
  signal: AbortSignal,
): { readonly code: number; readonly words: string } {
  // Commander has printed its own errors already.
  if (error instanceof CommanderError)
    return { code: error.exitCode === 0 ? EXIT.done : EXIT.usage, words: "" };
  const code = exitCodeOf(error);
  if (error instanceof KbsyncError) {
    const hint = error.hint === undefined ? "" : `${error.hint}\n`;
    return { code: code ?? EXIT.filesFailed, words: `kbsync: ${error.message}\n${hint}` };
  }
  // What was under way breaks off in many ways when a person stops it, and none of them is news.
  if (signal.aborted) return { code: EXIT.stopped, words: "" };
  if (code !== undefined) return { code, words: `kbsync: ${messageOf(error)}\n` };
  const stack = error instanceof Error ? error.stack : messageOf(error);
  return { code: EXIT.defect, words: `kbsync: a defect in kbsync, please report it: ${stack}\n` };
}

/** `kbsync … | head` closes the pipe: that is no failure. */
function endOnClosedPipe(error: Error): void {
  if (codeOf(error) === "EPIPE") process.exit(EXIT.done);
  throw error;
}
