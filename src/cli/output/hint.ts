import { resolve } from "node:path";
import { shellWord } from "../../lib/shell-word.ts";

/** How to type a command that reaches the same instance as this process. */
export interface Invocation {
  /** `kbsync`, or how to run it if it is not in the PATH. */
  readonly program: string;
  /** Options that every command needs, quoted for a shell; may be empty. */
  readonly options: string;
}

/** Returns how commands are typed in this environment. `options` are those of the command that runs. */
export function invocationOf(
  { env, cwd }: { readonly env: NodeJS.ProcessEnv; readonly cwd: string },
  { config, stateDir }: { readonly config?: string; readonly stateDir?: string },
): Invocation {
  // The state folder of a system unit belongs to another user, and its journal is read in another folder.
  const unitState = (env["XDG_RUNTIME_DIR"] ?? "") === "" ? env["STATE_DIRECTORY"]?.split(":")[0] : "";
  const isUnit = (unitState ?? "") !== "";
  const state = stateDir ?? (isUnit ? unitState : undefined);
  const options = [
    ...(config === undefined ? [] : ["--config", shellWord(resolve(cwd, config))]),
    ...(state === undefined ? [] : ["--state-dir", shellWord(resolve(cwd, state))]),
  ];
  return { program: isUnit ? "sudo kbsync" : programOf(env), options: options.join(" ") };
}

/** A clone has a script of its own, which says how it was typed; npm runs in the clone. */
function programOf({ KBSYNC_COMMAND: typed, npm_lifecycle_event: script }: NodeJS.ProcessEnv): string {
  if (typed !== undefined) return shellWord(typed);
  return script === "start" ? "./kbsync" : "kbsync";
}

/** A command within a line of a shell, up to a redirection or the next command. */
const COMMAND = /(^|[ (])kbsync( [a-z][^;&|>]*?)(?=$| [;&|>])/g;

/** Completes the commands in a shell line, so that they run this program on the same state folder. Pure. */
export function completeCommand(line: string, invocation: Invocation | undefined): string {
  if (invocation === undefined) return line;
  const { program, options } = invocation;
  return line.replaceAll(COMMAND, (_, before: string, rest: string) => {
    const isComplete = options === "" || / --(?:help|state-dir|config)\b/.test(rest);
    return `${before}${program}${rest}${isComplete ? "" : ` ${options}`}`;
  });
}

/** Completes all commands between backticks in a text. Pure. */
export function completeCommands(text: string, invocation: Invocation | undefined): string {
  return text.replaceAll(/`([^`\n]+)`/g, (_, line: string) => {
    return `\`${completeCommand(line, invocation)}\``;
  });
}
