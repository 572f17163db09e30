import { visible } from "./visible.ts";
import type { ProgressOutput } from "./progress.ts";

/** A page of a terminal's own, beside what was on it, that is drawn over and over. */
export interface Screen {
  /** Draws a text in place of the one before, as much of it as there is room for. */
  show(text: string): void;
  /** Gives the terminal back as it was. May be called again. */
  close(): void;
}

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Takes over a terminal; whatever ends the process gives it back. */
export function openScreen(output: ProgressOutput): Screen {
  let open = true;
  const close = (): void => {
    if (!open) return;
    open = false;
    process.off("exit", close);
    output.draw(LEAVE);
  };
  // A second Ctrl-C ends the process at once.
  process.on("exit", close);
  output.draw(ENTER);
  return {
    show: (text) => {
      const lines = visible(text).replace(/\n$/, "").split("\n");
      const rows = Math.max(1, output.rows ?? lines.length);
      const fitting = lines.length <= rows ? lines : [...lines.slice(0, rows - 1), moreLine(lines, rows)];
      // Line by line over what is there, which does not flicker as an emptied screen does.
      const drawn = fitting.map((line) => `${line.slice(0, output.columns)}${CLEAR_LINE}`).join("\r\n");
      output.draw(`${HOME}${drawn}${CLEAR_BELOW}`);
    },
    close,
  };
}

function moreLine(lines: readonly string[], rows: number): string {
  return `… ${lines.length - rows + 1} more lines: make the window larger, or run kbsync status without --watch`;
}
