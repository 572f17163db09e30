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
   * Calls the listener at each SIGHUP, until the function that it returns is called. Undefined: a hang-up ends the
   * program, as one of its terminal should.
   */
  readonly onHangup?: (listener: () => void) => () => void;
  /** Keeps each SIGHUP until `onHangup` is called: said first by what reloads, or an early one would end it. */
  readonly holdHangups?: () => void;
  readonly nowMs: () => number;
  /** How a person types further commands; set before the command runs. */
  invocation?: Invocation;
  /** Whether standard output is for programs or holds text of documents: no command is completed, and no line is wrapped. */
  isVerbatim?: boolean;
  /** Whether only results and errors are printed; set before the command runs. */
  isQuiet?: boolean;
  /** The exit status, set by the command that ran. */
  exitCode: number;
}
