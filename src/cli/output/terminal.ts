/** The outputs of a terminal's owner. */
export interface Streams {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** Owns both outputs: other text clears the bar, which is drawn again below. */
export interface Terminal {
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** Shows a line below all other text, in place of the last one; an empty one removes it. */
  bar(line: string): void;
}

const CLEAR = "\r\u001b[K";

/** Opens the owner of the outputs. Text passes through unchanged while there is no bar. */
export function openTerminal({ stdout, stderr }: Streams): Terminal {
  let bar = "";
  const above = (write: () => unknown): void => {
    if (bar !== "") stdout.write(CLEAR);
    write();
    if (bar !== "") stdout.write(bar);
  };
  return {
    out: (text) => above(() => stdout.write(text)),
    err: (text) => above(() => stderr.write(text)),
    bar: (line) => {
      if (line === bar) return;
      stdout.write(bar === "" ? line : `${CLEAR}${line}`);
      bar = line;
    },
  };
}

/** The owner of this process's outputs: all parts write to them through it. */
export const terminal = openTerminal(process);

/** Whether an output can replace what it shows: a terminal that is not dumb. */
export function canRedraw({ TERM }: NodeJS.ProcessEnv, isTTY: boolean): boolean {
  return isTTY && TERM !== "dumb";
}

/** Whether an output shows colours: one that can redraw, unless `NO_COLOR` is set (no-color.org). */
export function hasColours(env: NodeJS.ProcessEnv, isTTY: boolean): boolean {
  return canRedraw(env, isTTY) && (env["NO_COLOR"] ?? "") === "";
}
