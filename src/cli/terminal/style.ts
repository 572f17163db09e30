import { hostname } from "node:os";
import { pathToFileURL } from "node:url";
import { styleText } from "node:util";
import type { Context } from "../output/context.ts";
import { hasColours } from "../output/terminal.ts";
import { proseCells } from "./prose.ts";
import { visibleLine } from "../output/visible.ts";

/** The style of text on an output. Every function escapes the control characters of its text. */
export interface Style {
  /** Width of the output in cells; less on a very wide terminal, where lines would be hard to read. */
  readonly columns: number;
  /** Whether the output shows symbols beyond ASCII. */
  readonly symbols: boolean;
  readonly plain: (text: string) => string;
  readonly strong: (text: string) => string;
  readonly faint: (text: string) => string;
  readonly match: (text: string) => string;
  /** A link to a file, if the terminal supports links (OSC 8). */
  readonly fileLink: (text: string, absolutePath: string) => string;
}

/** Width of an output that is not a terminal, or that does not report its width. */
const COLUMNS_DEFAULT = 80;

/** Returns the style of an output: plain unless it is a terminal that shows more. `NO_COLOR` (no-color.org) is honoured. */
export function styleOf({ env, stdout }: Pick<Context, "env" | "stdout">): Style {
  const { TERM } = env;
  const isColoured = hasColours(env, stdout.isTTY);
  // Other terminals ignore the sequence or show the link; the Linux console has no mouse to follow one with.
  const hasLinks = stdout.isTTY && TERM !== "dumb" && TERM !== "linux";
  const inStyle = (format: Parameters<typeof styleText>[0]) => (text: string) =>
    isColoured ? styleText(format, visibleLine(text), { validateStream: false }) : visibleLine(text);
  return {
    columns: stdout.isTTY ? Math.max(COLUMNS_MIN, proseCells(stdout.columns)) : COLUMNS_DEFAULT,
    symbols: isUtf8(env),
    plain: visibleLine,
    strong: inStyle("bold"),
    faint: inStyle("dim"),
    match: inStyle(["bold", "yellow"]),
    fileLink: (text, absolutePath) => {
      const shown = inStyle("cyan")(text);
      return hasLinks ? `${OSC}8;;${fileUrl(absolutePath)}${ST}${shown}${OSC}8;;${ST}` : shown;
    },
  };
}

/** A tiny window would wrap every letter. */
const COLUMNS_MIN = 20;
const OSC = "\u001b]";
const ST = "\u001b\\";

/** Whether the locale encodes text as UTF-8, by the first variable that is set (locale(7)). */
function isUtf8({ LC_ALL = "", LC_CTYPE = "", LANG = "" }: NodeJS.ProcessEnv): boolean {
  return /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG);
}

/** The host tells a terminal on another machine that the file is elsewhere. */
function fileUrl(path: string): string {
  const url = pathToFileURL(path);
  url.hostname = hostname();
  return url.href;
}
