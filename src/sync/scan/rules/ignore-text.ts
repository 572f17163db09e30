/** A pattern of an ignore file, in gitignore syntax and in NFC. */
export interface IgnoreLine {
  /** As written, for messages. */
  readonly text: string;
  /** Number of the line, from 1. */
  readonly line: number;
  /** The pattern; more than one if the text may mean several things, all of which are excluded. */
  readonly readings: readonly string[];
  /** Set if nobody can be sure what the text means. */
  readonly isDoubtful: boolean;
}

/** Part of UTF-16 without a byte order mark that must be ASCII, so that the encoding is certain. */
const ASCII_PART = 0.5;

/**
 * Decodes an ignore file: UTF-8, UTF-16 with a byte order mark, and UTF-16 without one if it is certainly that, as
 * programs on Windows write it. Undefined for anything else, whose patterns are unknown. Invalid bytes in comments do not
 * matter.
 */
export function decodeIgnoreFile(bytes: Uint8Array): string | undefined {
  const [first = 0, second] = bytes;
  const isMarked = first >= 0xfe;
  if (!isMarked && !bytes.includes(0)) return decode("utf-8", bytes) ?? withoutInvalidComments(bytes);
  // Lines in UTF-8 beside UTF-16, from `echo >>` or before a `>>` of PowerShell, are no characters of it, though two of their
  // bytes look like one.
  if (bytes.some((byte, at) => byte === 0x0a && at % 2 === 1 && bytes[at - 1] !== 0)) return undefined;
  if (first === 0xff && second === 0xfe) return decode("utf-16le", bytes);
  if (first === 0xfe && second === 0xff) return decode("utf-16be", bytes);
  return ["utf-16le", "utf-16be"].map((name) => decode(name, bytes)).find((text) => isMostlyAscii(text));
}

function decode(encoding: string, bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

function isMostlyAscii(text: string | undefined): boolean {
  if (text === undefined || !/^[\t\n\r -~]/.test(text)) return false;
  const ascii = text.match(/[\t\n\r -~]/g)?.length ?? 0;
  return ascii >= text.length * ASCII_PART && !/[^\P{Cc}\t\n\r]/u.test(text);
}

function withoutInvalidComments(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder("utf-8").decode(bytes);
  return linesOf(text).some((line) => line.includes("\uFFFD") && !line.startsWith("#")) ? undefined : text;
}

function linesOf(text: string): string[] {
  return text.split(/\r*\n|[\r\v\f\u0085\u2028\u2029]/);
}

/**
 * Parses an ignore file. Drops comments and empty lines. Patterns in another form than Git's are read as they are meant if
 * that is certain; `folder` is the absolute path of the file's folder, which a pattern may begin with.
 */
export function parseIgnoreFile(text: string, folder: string): readonly IgnoreLine[] {
  const root = folder.normalize("NFC").replace(/\/+$/, "");
  return patternLines(text).map(({ text: written, line, isNegative, body }) => {
    const literal = plainForm(body, root);
    const meant = meantBy(literal).map((each) => plainForm(each, root));
    const isDoubtful = meant.some((each) => each !== literal) || matchesNothing(written, literal);
    // What a doubtful exception might include again stays excluded.
    const readings = isNegative ? [`!${literal}`] : [...new Set([literal, ...meant.map(escapeStart)])];
    return { text: written, line, readings, isDoubtful };
  });
}

/** In the middle of a line, these characters were no exception and no comment. */
function escapeStart(pattern: string): string {
  return pattern.replace(/^(?=[!#])/, "\\");
}

/** Parses an ignore file of Git, in which every line means what it means to Git. */
export function parseGitIgnore(text: string): readonly IgnoreLine[] {
  return patternLines(text).map(({ text: written, line, isNegative, body }) => ({
    text: written,
    line,
    readings: [(isNegative ? "!" : "") + body],
    isDoubtful: false,
  }));
}

function patternLines(text: string): { text: string; line: number; isNegative: boolean; body: string }[] {
  return linesOf(text.normalize("NFC")).flatMap((raw, index) => {
    // Joined files may have a byte order mark inside.
    const written = raw.replace(/^\uFEFF/, "");
    if (written.trim() === "" || written.startsWith("#")) return [];
    const isNegative = written.startsWith("!");
    const body = isNegative ? written.slice(1) : written;
    return [{ text: written.trimEnd(), line: index + 1, isNegative, body }];
  });
}

/** Git's form of what certainly means the same: without blanks at the end, `./`, `//`, and the path of the file's folder. */
function plainForm(body: string, root: string): string {
  const end = body.trimEnd();
  const kept = end.endsWith("\\") ? body.slice(0, end.length + 1) : end;
  const trimmed = kept.replaceAll(/\/{2,}/g, "/");
  const below = `${trimmed}/`.startsWith(`${root}/`) ? trimmed.slice(root.length) : trimmed;
  return below
    .replace(/^(?:\.\/)+/, "/")
    .replaceAll(/(?<=\/)(?:\.\/)+/g, "")
    .replace(/(?<=\/)\.$/, "");
}

/** A comment behind a pattern: after a blank, or with certainty after the end of a name. */
const COMMENT = /(?:(?<=[/*]|\.[a-z]\w{0,7})\s+#.*|(?<=\S)\s+#(?:\s.*)?)$/i;
const QUOTED = /^["'`“”„‘’«](.+)["'`“”„‘’»]((?:\/.*)?)$/;
/** `[Draft] a.md` is a name, where `[Dd]raft` is a set of letters. */
const BRACKETED = /(?<!\\)\[([\p{L}\p{N} ]{4,})\]/gu;
/** Characters that nobody sees, except those that join letters and emoji. */
const INVISIBLE = /[\u00AD\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/g;

/** What a pattern means whose writer expected another syntax than Git's: itself if there is no sign of that. */
function meantBy(pattern: string): readonly string[] {
  const uncommented = pattern.replace(COMMENT, "");
  const unquoted = uncommented.trimStart().replace(/^- +/, "").replace(QUOTED, "$1$2");
  const visible = unquoted.replaceAll(INVISIBLE, "");
  // Before one of these, a backslash has a use in Git's syntax: before the last two at the start of a name only. `\*` has one
  // too, but `folder\*` means all of a folder.
  const slashed = visible.replaceAll(/\\+(?![ ?[\]\\#!])|(?<=[^/\s])\\(?=[#!])/g, "/");
  if (/^\/?\.?$/.test(slashed)) return ["*"];
  const literal = slashed.replaceAll(BRACKETED, String.raw`\[$1\]`);
  return listed(literal).flatMap(alternatives);
}

/** The patterns of a line that has several: names with an end such as `.md`, or folders. */
function listed(pattern: string): readonly string[] {
  const parts = pattern.split(/[,;\s]+/);
  return parts.every((part) => /^\S*(?:\/|\.[a-z]\w{0,9})$/i.test(part)) ? parts : [pattern];
}

/** Expansions of one pattern that are followed; braces multiply. */
const ALTERNATIVES_MAX = 100;

/** Expands `{a,b}` and `@(a|b)`, which Git does not know. What has too many expansions stands for any name. */
function alternatives(pattern: string): readonly string[] {
  const inBraces = pattern.replaceAll(
    /[@?*+]\(([^()|]*(?:\|[^()|]*)+)\)/g,
    (_, inside: string) => `{${inside.replaceAll("|", ",")}}`,
  );
  let expanded: readonly string[] = [inBraces];
  for (;;) {
    const next = expanded.flatMap((each) => {
      const [found, inside = ""] = /\{([^{}]*(?:,|\.\.)[^{}]*)\}/.exec(each) ?? [];
      if (found === undefined) return [each];
      const parts = inside.includes(",") ? inside.split(",") : ["*"];
      return parts.map((part) => each.replace(found, () => part));
    });
    if (next.length > ALTERNATIVES_MAX) return [inBraces.replace(/\{.*\}/, "*")];
    if (next.join("\n") === expanded.join("\n")) return expanded;
    expanded = next;
  }
}

/** Paths outside the folder, sets and quotes without an end, expressions of other programs, and control characters. */
function matchesNothing(written: string, literal: string): boolean {
  return (
    /^~\w*(?:\/|$)|(?:^|\/)\.\.(?:\/|$)|^(?:\w+:|\$\w+|%\w+%)\/|(?<!\\)\[[^\]]*$|^["“„«`^]|\p{Cc}/u.test(
      literal,
    ) || /^!\([^()]*\|/.test(written)
  );
}
