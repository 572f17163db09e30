import { KbsyncError } from "../lib/failure.ts";

/** Text of unit files (systemd.syntax(7)). Pure. */

/**
 * Replaces all values of a key in a section, at the position of the first, or else appends them to the section. Without
 * values the key is removed. Throws a TypeError when the section is missing.
 */
export function withDirective(text: string, section: string, key: string, values: readonly string[]): string {
  const lines = text.split("\n");
  const begin = lines.indexOf(`[${section}]`);
  if (begin === -1) throw new TypeError(`no section [${section}]`);
  const next = lines.findIndex((line, at) => at > begin && line.startsWith("["));
  const end = next === -1 ? lines.length : next;
  const body = lines.slice(begin + 1, end);
  const isKey = (line: string): boolean => line.startsWith(`${key}=`);
  const first = body.findIndex(isKey);
  const added = values.map((value) => `${key}=${value}`);
  const others = body.filter((line) => !isKey(line));
  const at = first === -1 ? lastFilled(others) + 1 : first;
  return [...lines.slice(0, begin + 1), ...others.toSpliced(at, 0, ...added), ...lines.slice(end)].join("\n");
}

/** Returns all values of a key, in order. */
export function directive(text: string, key: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${key}=`))
    .map((line) => line.slice(key.length + 1));
}

/** Quotes one word of a value: specifiers, spaces, quotes and colons lose their meaning. */
export function unitWord(word: string): string {
  const plain = word.replaceAll("%", "%%");
  return /^[\w@%+,./=-]+$/.test(plain) ? plain : `"${plain.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/**
 * Escapes a path at the end of a value that systemd does not split into words, as in `LoadCredential=`: quotes would become
 * part of it, only specifiers have a meaning. Throws `usage` for a path that systemd would silently read as another one: it
 * strips spaces at the end of a line, and a backslash there joins the line with the next.
 */
export function restOfLine(path: string): string {
  // oxlint-disable-next-line no-control-regex -- it searches for them
  if (!/[\u0000-\u001f\u007f]|[\s\\]$/.test(path)) return path.replaceAll("%", "%%");
  throw new KbsyncError(`no unit can name the file ${JSON.stringify(path)}`, {
    code: "usage",
    subject: path,
    hint: "Give it a name without control characters that does not end with a space or a backslash.",
  });
}

/**
 * Formats a folder of `TemporaryFileSystem=` that the unit sees empty and read-only. A colon separates parts of the word,
 * quoted or not, so a colon in the path is escaped twice: for the word and for its parts.
 */
export function emptyFolder(path: string): string {
  if (unitWord(path) === path) return `${path}:ro`;
  return unitWord(path.replaceAll(/[\\:]/g, String.raw`\$&`)).replace(/"?$/, ":ro$&");
}

/** Quotes one word of a command line, dollar signs included. */
export function commandWord(word: string): string {
  return unitWord(word.replaceAll("$", "$$$$"));
}

/** Escapes an absolute path as a template instance: `/srv/my docs` becomes `srv-my\x20docs` (systemd-escape(1)). */
export function escapePath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return "-";
  return [...Buffer.from(parts.join("/"))]
    .map((byte, at) => {
      const character = String.fromCodePoint(byte);
      if (character === "/") return "-";
      const isPlain = /[A-Za-z0-9:_]/.test(character) || (character === "." && at > 0);
      return isPlain ? character : `\\x${byte.toString(16).padStart(2, "0")}`;
    })
    .join("");
}

/** Index of the last line that is not empty, or -1. */
function lastFilled(lines: readonly string[]): number {
  return lines.findLastIndex((line) => line !== "");
}
