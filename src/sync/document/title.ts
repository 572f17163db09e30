import { decodeEntities } from "./entities.ts";
import type { DocumentFields } from "./fields.ts";
import { readFrontMatter } from "./front-matter.ts";
import type { TextFormat } from "./kinds.ts";

/** The own metadata of a text. */
export interface Naming {
  readonly title?: string;
  readonly description?: string;
  /** Default: none. */
  readonly fields?: DocumentFields;
}

/** A title is near the start. The bound avoids searching a file without one to its end. */
const HEAD_CHARS = 64 * 1024;
/** A longer line is not a heading. */
const LINE_CHARS = 4000;

/** Finds the title and description of a text: Markdown front matter, else the first heading in the format's own syntax. */
export function nameText(text: string, format: TextFormat): Naming {
  switch (format) {
    case "markdown": {
      const front = readFrontMatter(text);
      const title = front?.title ?? markdownHeading(text, front?.end ?? 0);
      return {
        ...(title !== undefined && { title }),
        ...(front?.description !== undefined && { description: front.description }),
        ...(front !== undefined && { fields: front.fields }),
      };
    }
    case "asciidoc":
      return titled(firstMatch(text, /^=[ \t]+(\S.*)$/m));
    case "org":
      return titled(firstMatch(text, /^#\+title:[ \t]*(\S.*)$/im) ?? firstMatch(text, /^\*+[ \t]+(\S.*)$/m));
    case "rst":
      return titled(rstHeading(text));
    case "html":
      return titled(htmlTitle(text));
    case "mail":
    case "csv":
    case "tsv":
    case "subtitles":
    case "notebook":
    case "rtf":
    case "plain":
      return {};
  }
}

function titled(title: string | undefined): Naming {
  return title === undefined ? {} : { title };
}

function markdownHeading(text: string, start: number): string | undefined {
  const [first] = markdownHeadings(text, start, HEAD_CHARS).take(1);
  return first?.heading;
}

/**
 * Yields the ATX and setext headings (CommonMark 4.2 and 4.3) and HTML headings outside of code and comments, as a reader
 * sees them, each with the offset at which the text below it starts. Reads about `charsMax` characters from `start`.
 */
export function* markdownHeadings(
  text: string,
  start: number,
  charsMax: number,
): Generator<{ readonly heading: string; readonly end: number }> {
  let fence: string | undefined;
  let inComment = false;
  let paragraph: string[] = [];

  for (const { line, end } of linesOf(text, start, charsMax)) {
    if (fence !== undefined) {
      if (closesFence(line, fence)) fence = undefined;
      continue;
    }
    if (inComment) {
      inComment = !line.includes("-->");
      continue;
    }
    const opened = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (opened !== undefined) {
      fence = opened;
      paragraph = [];
      continue;
    }
    if (line.trimStart().startsWith("<!--")) {
      inComment = !line.includes("-->");
      paragraph = [];
      continue;
    }

    const atx = /^ {0,3}#{1,6}(?:[ \t]+(.*))?$/.exec(line);
    const html = /^\s*<h[1-6](?:\s[^>]*)?>(.*?)(?:<\/h[1-6]>|$)/i.exec(line);
    const underlined = paragraph.length > 0 && /^ {0,3}(?:=+|-+)[ \t]*$/.test(line);
    const heading =
      (atx === null ? undefined : (atx[1] ?? ""))?.replace(/(?:^|[ \t]+)#+[ \t]*$/, "") ??
      html?.[1] ??
      (underlined ? paragraph.join(" ") : undefined);
    if (heading !== undefined) {
      const plain = withoutMarkup(heading);
      if (plain !== "") yield { heading: plain, end };
      paragraph = [];
    } else if (isParagraphLine(line, paragraph.length > 0)) paragraph.push(line.trim());
    else paragraph = [];
  }
}

function closesFence(line: string, fence: string): boolean {
  const run = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return run !== undefined && run[0] === fence[0] && run.length >= fence.length;
}

/** Whether a line can be the text of a setext heading, that is, not a rule, list, quote, table or indented code. */
function isParagraphLine(line: string, continues: boolean): boolean {
  if (line.trim() === "") return false;
  if (!continues && /^(?: {4}|\t)/.test(line)) return false;
  if (/^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/.test(line)) return false;
  return !/^ {0,3}(?:[-+*>|]|\d{1,9}[.)])(?:[ \t]|$)/.test(line);
}

/** A reStructuredText section title: a line underlined by one repeated character, at least as long as the title. */
function rstHeading(text: string): string | undefined {
  let previous = "";
  for (const { line } of linesOf(text, 0, HEAD_CHARS)) {
    const trimmed = line.trimEnd();
    if (previous !== "" && /^([=\-~^"'`#*+:.<>_])\1+$/.test(trimmed) && trimmed.length >= previous.length)
      return previous;
    previous = /^([^\w\s])\1*$/.test(trimmed) || /^\s|^\.\. /.test(line) ? "" : trimmed;
  }
  return undefined;
}

function htmlTitle(text: string): string | undefined {
  const inner =
    firstMatch(text, /<title(?:\s[^>]*)?>([^<]*)<\/title/i) ?? firstMatch(text, /<h1(?:\s[^>]*)?>([^<]*)</i);
  const plain = inner === undefined ? "" : decodeEntities(inner).trim();
  return plain === "" ? undefined : plain;
}

function firstMatch(text: string, pattern: RegExp): string | undefined {
  return pattern.exec(text.slice(0, HEAD_CHARS))?.[1];
}

/** The text of a Markdown heading as a reader sees it. */
function withoutMarkup(heading: string): string {
  return heading
    .replaceAll(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, "$1") // links and images
    .replaceAll(/<\/?[a-z][^>]*>/gi, "") // HTML
    .replace(/\s*\{#?[^{}]*\}\s*$/, "") // {#id .class}
    .replaceAll(/(`+)(.+?)\1/g, "$2") // code
    .replaceAll(/(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1/g, "$2") // emphasis
    .replaceAll(/(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)/g, "$2")
    .replaceAll(/\\([!-/:-@[-`{-~])/g, "$1") // escapes
    .trim();
}

/** Lines from `start` on, without line ends, each cut at a maximum length, with the offset of the next one. */
function* linesOf(
  text: string,
  start: number,
  charsMax: number,
): Generator<{ readonly line: string; readonly end: number }> {
  const bound = Math.min(text.length, start + charsMax);
  for (let at = start; at < bound;) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(at, Math.min(end, at + LINE_CHARS));
    at = end + 1;
    yield { line: line.endsWith("\r") ? line.slice(0, -1) : line, end: Math.min(at, text.length) };
  }
}
