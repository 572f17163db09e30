import { isatty } from "node:tty";
import { CommanderError } from "commander";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";
import { runningInstances } from "./state/instances.ts";
import { buildProgram, standardError } from "./command-line.ts";
import type { Context } from "./output/context.ts";
import { EXIT, exitCodeOf } from "./output/exit-code.ts";
import { PRIORITY, writeError } from "./output/journal.ts";
import { openHangups } from "./systemd/hangups.ts";
import { terminal } from "./output/terminal.ts";
import { prose, unbroken } from "./terminal/prose.ts";
import { visible } from "./output/visible.ts";

/** Runs the program on its arguments (without node and script) and resolves with the exit status. Never rejects. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  const onSignal = (): void => {
    // A second signal ends the process at once: the ledger survives that as it survives kill -9.
    if (stopping.signal.aborted) process.exit(EXIT.stopped);
    stopping.abort();
    setTimeout(cutOff, STOP_MS_MAX).unref();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  process.stdout.on("error", endOnClosedPipe);

  const hangups = openHangups(process);
  const message = (text: string): string =>
    prose({ stdout: standardError, invocation: context.invocation }, text);
  const result = (text: string): string => (context.isVerbatim === true ? text : prose(context, text));
  const context: Context = {
    stdout: {
      write: (text) => terminal.out(visible(result(text))),
      draw: (text) => terminal.out(text),
      bar: (line) => terminal.bar(line),
      isTTY: isatty(1),
      get columns() {
        return process.stdout.columns || 80;
      },
    },
    stderr: { write: (text) => terminal.err(visible(message(text))) },
    stderrIsTTY: isatty(2),
    env: process.env,
    cwd: process.cwd(),
    signal: stopping.signal,
    // A closing terminal hangs up: its programs end with it, and nobody reads their output.
    ...(!isatty(0) && !isatty(2) && { onHangup: hangups.listen, holdHangups: hangups.hold }),
    nowMs: Date.now,
    exitCode: EXIT.done,
  };
  try {
    const program = await buildProgram(context, args);
    await program.parseAsync(args, { from: "user" });
    return context.exitCode;
  } catch (error) {
    const { code, words } = endOf(await explain(error, context.env), stopping.signal);
    writeError(message(words));
    return code;
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

/** Adds to the error of a command what the running processes say of it. */
async function explain(ended: unknown, env: Context["env"]): Promise<unknown> {
  if (!(ended instanceof KbsyncError) || ended.subject === undefined) return ended;
  if (ended.code === "state_locked") {
    // Loaded here, because other commands need little of it.
    const { silentHolder } = await import("./compose/reached-service.ts");
    return (await silentHolder(ended.subject)) ?? ended;
  }
  const { code, subject, hint = "", cause } = ended;
  const isRefused = code.startsWith("config_");
  const user = isRefused ? runningInstances(env).find(({ config }) => config === subject) : undefined;
  if (user === undefined) return ended;
  const words = `Not applied: the running kbsync ${user.command} (process ${user.pid}) goes on with the former configuration.`;
  return new KbsyncError(ended.message, { code, subject, hint: `${words} ${hint}`.trimEnd(), cause });
}

/**
 * A signal ends the program within ten seconds, for which a service manager and a person wait. Anything still unfinished is cut
 * off as by kill -9, and repaired at the next start.
 */
const STOP_MS_MAX = 9500;

function cutOff(): void {
  writeError(
    "kbsync: unfinished work took too long to stop; the next start completes it\n",
    PRIORITY.warning,
  );
  process.exit(EXIT.stopped);
}

/** Returns the exit status for the error that ended a command, and the words for standard error. */
export function endOf(
  error: unknown,
  signal: AbortSignal,
): { readonly code: number; readonly words: string } {
  // Commander has printed its own standardError already.
  if (error instanceof CommanderError)
    return { code: error.exitCode === 0 ? EXIT.done : EXIT.usage, words: "" };
  const code = exitCodeOf(error);
  if (error instanceof KbsyncError) {
    const hint = error.hint === undefined ? "" : `${error.hint}\n`;
    const words = `kbsync: ${error.message}\n${hint}`;
    const { subject = "" } = error;
    const shown = subject === "" ? words : words.replaceAll(subject, unbroken);
    return { code: code ?? EXIT.filesFailed, words: shown };
  }
  // Work in progress ends in many ways when a person stops it; none is worth a message.
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
