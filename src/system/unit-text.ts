import { KbsyncError } from "../lib/failure.ts";

/** Text of unit files (systemd.syntax(7)). Pure. */

/**
 * Puts values in place of all that a section says for a key, where the first of them stood, else at the section's end. No
 * value: the key goes. Throws a TypeError for a section that is not there.
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
  const kept = body.filter((line) => !isKey(line));
  const at = first === -1 ? lastFilled(kept) + 1 : first;
  return [...lines.slice(0, begin + 1), ...kept.toSpliced(at, 0, ...added), ...lines.slice(end)].join("\n");
}

/** What a section says for a key, in its order. */
export function directive(text: string, key: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${key}=`))
    .map((line) => line.slice(key.length + 1));
}

/** One word of a value: specifiers mean nothing in it, and spaces, quotes and colons are its own. */
export function unitWord(word: string): string {
  const plain = word.replaceAll("%", "%%");
  return /^[\w@%+,./=-]+$/.test(plain) ? plain : `"${plain.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/**
 * A path that ends a value which is not divided into words, as in `LoadCredential=`: quotes would be part of it, and only
 * specifiers have a meaning. Throws `usage` for what systemd would read as another path without a word: it takes spaces off
 * the end of a line, and a backslash there joins it with the next.
 */
export function restOfLine(path: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (!/[\u0000-\u001f\u007f]|[\s\\]$/.test(path)) return path.replaceAll("%", "%%");
  throw new KbsyncError(`no unit can name the file ${JSON.stringify(path)}`, {
    code: "usage",
    subject: path,
    hint: "Give it a name without control characters that does not end with a space or a backslash.",
  });
}

/**
 * A folder of `TemporaryFileSystem=` to be shown empty and read-only. Its colon divides within a word, quoted or not, so
 * that a path's own is escaped twice: once for the word, once for its parts.
 */
export function emptyFolder(path: string): string {
  if (unitWord(path) === path) return `${path}:ro`;
  return unitWord(path.replaceAll(/[\\:]/g, String.raw`\$&`)).replace(/"?$/, ":ro$&");
}

/** One word of a command line, in which a dollar sign stands for itself. */
export function commandWord(word: string): string {
  return unitWord(word.replaceAll("$", "$$$$"));
}

/** A path as the instance of a template: `/srv/my docs` is `srv-my\x20docs` (systemd-escape(1)). For absolute paths. */
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

/** Place of the last line that is not empty; -1: there is none. */
function lastFilled(lines: readonly string[]): number {
  return lines.findLastIndex((line) => line !== "");
}
