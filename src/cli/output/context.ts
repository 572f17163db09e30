import type { Invocation } from "./hint.ts";
import type { ProgressOutput } from "./progress.ts";

/** The environment of a command. */
export interface Context {
  /** Results and progress. Log lines go to standard error. */
  readonly stdout: ProgressOutput;
  /** Output for people, which no script reads. */
  readonly stderr: { write(text: string): void };
  readonly stderrIsTTY: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Aborted by Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /**
   * Calls the listener at each SIGHUP, until the returned function is called. Undefined: a hang-up ends the program, as that of
   * its terminal should.
   */
  readonly onHangup?: (listener: () => void) => () => void;
  /**
   * Stores each SIGHUP until `onHangup` is called. A command that reloads calls it first, because an early signal would end the
   * program otherwise.
   */
  readonly holdHangups?: () => void;
  readonly nowMs: () => number;
  /** How to type further commands; set before the command runs. */
  invocation?: Invocation;
  /** Whether standard output is for programs or holds text of documents: no command is completed, and no line is wrapped. */
  isVerbatim?: boolean;
  /** Whether only results and errors are printed; set before the command runs. */
  isQuiet?: boolean;
  /** The exit status, set by the command that ran. */
  exitCode: number;
}
