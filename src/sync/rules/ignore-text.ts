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
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decode("utf-16le", bytes);
  if (first === 0xfe && second === 0xff) return decode("utf-16be", bytes);
  if (!bytes.includes(0)) return decode("utf-8", bytes) ?? withoutInvalidComments(bytes);
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
  if (text === undefined) return false;
  const ascii = text.match(/[\t\n\r -~]/g)?.length ?? 0;
  return ascii >= text.length * ASCII_PART && !/[^\P{Cc}\t\n\r]/u.test(text);
}

function withoutInvalidComments(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder("utf-8").decode(bytes);
  return linesOf(text).some((line) => line.includes("\uFFFD") && !line.startsWith("#")) ? undefined : text;
}

function linesOf(text: string): string[] {
  return text.split(text.includes("\n") ? /\r*\n/ : "\r");
}

/**
 * Parses an ignore file. Drops comments and empty lines. Patterns in another form than Git's are read as they are meant if
 * that is certain; `root` is the absolute path of the source, which a pattern may begin with.
 */
export function parseIgnoreFile(text: string, root: string): readonly IgnoreLine[] {
  return patternLines(text).map(({ text: written, line, isNegative, body }) => {
    const literal = plainForm(body, root);
    const meant = meantBy(literal).map((each) => plainForm(each, root));
    const isDoubtful = meant.some((each) => each !== literal) || matchesNothing(literal);
    // What a doubtful exception might include again stays excluded.
    const readings = isNegative ? [`!${literal}`] : [...new Set([literal, ...meant])];
    return { text: written, line, readings, isDoubtful };
  });
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

/** Git's form of what certainly means the same: without blanks at the end, `./`, `//`, and the source's own path. */
function plainForm(body: string, root: string): string {
  const trimmed = body.replace(/(?<!\\)\s+$/, "").replaceAll(/\/{2,}/g, "/");
  const below = trimmed.startsWith(`${root}/`) ? trimmed.slice(root.length) : trimmed;
  return below.replace(/^(?:\.\/)+/, "/");
}

/** What a pattern means whose writer expected another syntax than Git's: itself if there is no sign of that. */
function meantBy(literal: string): readonly string[] {
  const uncommented = literal.replace(/(?:(?<=\/)\s+#.*|(?<=\S)\s+#(?:\s.*)?)$/, "");
  const unquoted = uncommented.trimStart().replace(/^(["'])(.+)\1$/, "$2");
  // Before one of these, a backslash has a use in Git's syntax. `\*` has one too, but `folder\*` means all of a folder.
  const slashed = unquoted.replaceAll(/\\(?![ #!?[\]\\])/g, "/");
  return alternatives(slashed);
}

/** Expansions of one pattern that are followed; braces multiply. */
const ALTERNATIVES_MAX = 100;

/** Expands `{a,b}`, which Git does not know. */
function alternatives(pattern: string): readonly string[] {
  let expanded: readonly string[] = [pattern];
  for (;;) {
    const next = expanded.flatMap((each) => {
      const [found, inside = ""] = /\{([^{}]*,[^{}]*)\}/.exec(each) ?? [];
      return found === undefined ? [each] : inside.split(",").map((part) => each.replace(found, () => part));
    });
    if (next.length === expanded.length || next.length > ALTERNATIVES_MAX) return expanded;
    expanded = next;
  }
}

function matchesNothing(literal: string): boolean {
  return /^~|(?:^|\/)\.\.(?:\/|$)|(?<!\\)\[[^\]]*$/.test(literal);
}
