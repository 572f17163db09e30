import type { Context } from "../../src/cli/output/context.ts";
import type { ProgressOutput } from "../../src/cli/output/progress.ts";
import { prose } from "../../src/cli/terminal/prose.ts";

/** What a command in this process sees of the world outside: no terminal, and an output that nobody reads. */
export function cliContext(own: Partial<Context> = {}): Context {
  return {
    stdout: outputTo(() => undefined),
    stderr: { write: () => undefined },
    stderrIsTTY: false,
    env: {},
    cwd: "/",
    signal: new AbortController().signal,
    nowMs: Date.now,
    exitCode: 0,
    ...own,
  };
}

/** An output that is no terminal; `write` gets what is printed. */
export function outputTo(write: (text: string) => void): ProgressOutput {
  const size = { isTTY: false, columns: 80 };
  return {
    ...size,
    write: (text) => write(prose({ stdout: size }, text)),
    draw: () => undefined,
    bar: () => undefined,
  };
}
