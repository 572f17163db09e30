import { hash } from "node:crypto";
import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, isAbsence } from "../../../lib/failure.ts";
import type { FolderPath, RelativePath } from "../../plan/model.ts";
import type { IgnoreVersion } from "./ignore-settling.ts";
import { decodeIgnoreFile, type IgnoreLine, parseGitIgnore, parseIgnoreFile } from "./ignore-text.ts";

/** A larger file is not a hand-written list of patterns. */
const IGNORE_BYTES_MAX = 1024 * 1024;

/** No path is longer, and what compiles a pattern takes no longer one. */
const LINE_CHARS_MAX = 4096;

/** Why what an ignore file would exclude is unknown. */
export interface UnknownIgnore {
  /** A system error code, or one that is used like it. */
  readonly code: string;
  /** The end of a sentence that begins with the file. */
  readonly words: string;
}

/** The code of a file that changed and has not settled yet. */
export const UNSETTLED = "UNSETTLED";
export const CHANGED: UnknownIgnore = {
  code: UNSETTLED,
  words: "was changed a moment ago, and applies once it has settled",
};
/** The same after so long that it is reported to a person. */
export const STILL_CHANGING: UnknownIgnore = {
  code: "EBUSY",
  words: "has not stopped changing for a minute",
};
const TOO_LARGE: UnknownIgnore = { code: "EFBIG", words: "is larger than 1 MB and is not read" };
const LINE_TOO_LONG: UnknownIgnore = {
  code: "ENAMETOOLONG",
  words: `has a line of more than ${LINE_CHARS_MAX} characters`,
};
const NOT_TEXT: UnknownIgnore = { code: "EILSEQ", words: "is not text in UTF-8 or UTF-16" };
const IS_FOLDER: UnknownIgnore = { code: "EISDIR", words: "is a folder, not a file" };
const LEADS_NOWHERE: UnknownIgnore = { code: "ENOLINK", words: "is a symbolic link that leads nowhere" };
const NOT_A_FILE: UnknownIgnore = { code: "EINVAL", words: "is not a plain file" };

/** A pattern of an ignore file that may not mean what its writer expects. */
export interface DoubtfulPattern extends IgnoreLine {
  /** The ignore file, relative to the source. */
  readonly file: RelativePath;
}

/** A compiled line of an ignore file. */
export interface Pattern {
  readonly pattern: string;
  readonly mark: string;
}

/** An ignore file as it was read. */
export interface IgnoreContents extends IgnoreVersion {
  readonly patterns: readonly Pattern[];
  readonly doubtful: readonly DoubtfulPattern[];
  /** It was touched so recently that, with coarse file times, a later change may not show in them. */
  readonly isFresh: boolean;
}

/** An ignore file that a folder may have. */
export interface IgnorePlace {
  readonly kind: "git" | "own";
  readonly absolute: string;
  /** Its path as seen from the source, which identifies it in the ledger. */
  readonly file: RelativePath;
  /** The folder that its patterns are bound to, below the top of the work tree. */
  readonly boundTo: FolderPath;
}

/** Resolution of file times on some file systems (FAT). */
const COARSE_MS = 2000;

/** More than clocks of machines usually differ by. */
const OLD_MS = 60_000;

const ABSENT: IgnoreContents = {
  hash: undefined,
  isBlank: false,
  stamp: "",
  isFresh: false,
  isOld: false,
  patterns: [],
  doubtful: [],
};

/** Reads an ignore file. Returns `before`, its last contents, if it has not been touched since. */
export function readIgnoreFile(
  place: IgnorePlace,
  before: IgnoreContents | undefined,
): IgnoreContents | UnknownIgnore {
  const { kind, absolute, file } = place;
  try {
    const stats = statSync(absolute, { throwIfNoEntry: false });
    if (stats === undefined) {
      const isThere = lstatSync(absolute, { throwIfNoEntry: false }) !== undefined;
      return isThere ? LEADS_NOWHERE : ABSENT;
    }
    if (!stats.isFile()) return stats.isDirectory() ? IS_FOLDER : NOT_A_FILE;
    const stamp = stampOf(stats);
    if (before?.stamp === stamp && !before.isFresh) return before;
    if (stats.size > IGNORE_BYTES_MAX) return TOO_LARGE;
    const ageMs = Date.now() - Math.max(stats.mtimeMs, stats.ctimeMs);
    const text = decodeIgnoreFile(readFileSync(absolute));
    if (text === undefined) return NOT_TEXT;
    // To find out what a long one means would take too long.
    if (parseGitIgnore(text).some((line) => line.text.length > LINE_CHARS_MAX)) return LINE_TOO_LONG;
    const lines = kind === "own" ? parseIgnoreFile(text, dirname(absolute)) : parseGitIgnore(text);
    const patterns = lines.flatMap((line) => patternsOf(line, place));
    return {
      hash: hash("sha256", patterns.map(({ pattern }) => pattern).join("\n")),
      isBlank: patterns.length === 0,
      stamp,
      isFresh: ageMs < COARSE_MS,
      isOld: ageMs > OLD_MS,
      patterns,
      doubtful: lines.flatMap((line) => (line.isDoubtful ? [{ file, ...line }] : [])),
    };
  } catch (error) {
    if (isAbsence(error)) return ABSENT;
    const code = codeOf(error) ?? "UNKNOWN";
    return { code, words: `cannot be read (${code})` };
  }
}

/** Changes when a file does. */
function stampOf({ ino, size, mtimeMs, ctimeMs }: NonNullable<ReturnType<typeof statSync>>): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

/** The same for the file at a path; "" for none. */
export function stampAt(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "" : stampOf(stats);
  } catch {
    return "";
  }
}

/** The patterns of a line over the path below the top of the work tree, or else below the source. */
function patternsOf(
  { text, line, readings }: IgnoreLine,
  { boundTo, file }: IgnorePlace,
): readonly Pattern[] {
  const escaped = boundTo.normalize("NFC").replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
  const prefix = boundTo === "" ? "" : `/${escaped}`;
  const mark = `\`${text}\` in ${file}:${line}`;
  return readings.map((reading) => {
    const isNegative = reading.startsWith("!");
    const body = isNegative ? reading.slice(1) : reading;
    return { pattern: (isNegative ? "!" : "") + bindTo(prefix, body), mark };
  });
}

/** `foo` below folder `a` is `/a/**` + `/foo`, `x/y` is `/a/x/y`: a slash before the end binds a pattern to its folder. */
function bindTo(prefix: string, body: string): string {
  if (prefix === "") return body;
  const bound = body.trimEnd().replace(/\/$/, "").includes("/");
  return bound ? `${prefix}/${body.replace(/^\//, "")}` : `${prefix}/**/${body}`;
}
