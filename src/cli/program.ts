import { isatty } from "node:tty";
import { Command, CommanderError } from "commander";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";
import type { Context } from "./context.ts";
import { EXIT, exitCodeOf } from "./exit-code.ts";
import { addLog } from "./activity.ts";
import { addKey } from "./key.ts";
import { logLevel } from "./log.ts";
import { addApprove } from "./approve.ts";
import { addAsk } from "./question.ts";
import { addBackup } from "./backup.ts";
import { addDoctor } from "./doctor.ts";
import { addMcp } from "./mcp.ts";
import { addPause } from "./pause.ts";
import { addRecover } from "./recover.ts";
import { addRescan } from "./rescan.ts";
import { addResume } from "./resume.ts";
import { addRestore } from "./restore.ts";
import { addRetry } from "./retry.ts";
import { addRun } from "./run.ts";
import { addSearch } from "./search.ts";
import { addServe } from "./serve.ts";
import { addStatus } from "./status.ts";
import { addSync } from "./sync.ts";
import { addUndelete } from "./undelete.ts";
import { addUp } from "./up.ts";
import { addVerify } from "./verify.ts";
import { addWait } from "./wait.ts";
import { addWebhooks } from "./webhooks.ts";
import { addWhy } from "./why.ts";
import { programVersion } from "./version.ts";

/** Runs the program on its arguments (without node and script) and resolves with the exit status. Never rejects. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  const onSignal = (): void => {
    // A second signal does not wait for a clean end: the ledger survives that as it survives kill -9.
    if (stopping.signal.aborted) process.exit(EXIT.stopped);
    stopping.abort();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  process.stdout.on("error", endOnClosedPipe);

  const context: Context = {
    stdout: {
      write: (text) => void process.stdout.write(text),
      isTTY: isatty(1),
      get columns() {
        return process.stdout.columns ?? 80;
      },
    },
    stderr: { write: (text) => void process.stderr.write(text) },
    stderrIsTTY: isatty(2),
    env: process.env,
    cwd: process.cwd(),
    signal: stopping.signal,
    nowMs: Date.now,
    exitCode: EXIT.done,
  };
  try {
    await buildProgram(context).parseAsync(args, { from: "user" });
    return context.exitCode;
  } catch (error) {
    const { code, words } = endOf(error, stopping.signal);
    process.stderr.write(words);
    return code;
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

function buildProgram(context: Context): Command {
  const program = new Command("kbsync")
    .description(
      "Keeps a folder of documents and a knowledge base in exact agreement, and is the knowledge base where you have none.",
    )
    .version(programVersion())
    .exitOverride()
    .showHelpAfterError("(add --help for what there is)")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 some files failed or wait, 2 usage or configuration, 3 service unreachable or refuses, 4 deletes held or a folder missing, 74 no space left, 124 not in time (wait), 130 stopped.",
    );
  addUp(program, context);
  addRun(program, context);
  addServe(program, context);
  addSync(program, context);
  addStatus(program, context);
  addLog(program, context);
  addWait(program, context);
  addWhy(program, context);
  addSearch(program, context);
  addAsk(program, context);
  addPause(program, context);
  addResume(program, context);
  addRescan(program, context);
  addRetry(program, context);
  addApprove(program, context);
  addUndelete(program, context);
  addVerify(program, context);
  addRecover(program, context);
  addKey(program, context);
  addWebhooks(program, context);
  addMcp(program, context);
  addBackup(program, context);
  addRestore(program, context);
  addDoctor(program, context);
  program.hook("preAction", () => void logLevel(context.env));
  for (const command of program.commands.flatMap((one) => (one.commands.length > 0 ? one.commands : [one]))) {
    command
      .exitOverride()
      .option(
        "-c, --config <file>",
        "configuration file (default: $KBSYNC_CONFIG, else ./kbsync.config.json)",
      )
      .option(
        "--state-dir <dir>",
        "folder for key, ledger and the service's data (before the configuration's)",
      );
  }
  return program;
}

/** Exit status for what ended a command, and what is said of it on standard error. */
export function endOf(
  error: unknown,
  signal: AbortSignal,
): { readonly code: number; readonly words: string } {
  // Commander has told its own already.
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
