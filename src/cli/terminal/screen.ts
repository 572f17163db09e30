import { cutTo } from "./wrap.ts";
import { visible } from "../output/visible.ts";
import type { ProgressOutput } from "../output/progress.ts";

/** The terminal's alternate screen, redrawn repeatedly. */
export interface Screen {
  /** Replaces the text, cut to the size of the terminal. */
  show(text: string): void;
  /** Restores the terminal. Idempotent. */
  close(): void;
}

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Opens the alternate screen, which shows texts as `prose` prepares them. Any exit of the process restores the terminal. */
export function openScreen(output: ProgressOutput, prose: (text: string) => string): Screen {
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
      const lines = visible(prose(text)).replace(/\n$/, "").split("\n");
      const rows = Math.max(1, output.rows ?? lines.length);
      const shown = lines.length <= rows ? lines : [...lines.slice(0, rows - 1), moreLine(lines, rows)];
      // Overwrites line by line: clearing the screen first would flicker.
      const drawn = shown.map((line) => `${cutTo(line, output.columns)}${CLEAR_LINE}`).join("\r\n");
      output.draw(`${HOME}${drawn}${CLEAR_BELOW}`);
    },
    close,
  };
}

function moreLine(lines: readonly string[], rows: number): string {
  return `… ${lines.length - rows + 1} more lines: make the window larger, or run \`kbsync status\` without --watch`;
}
