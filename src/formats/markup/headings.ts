/** A longer line is not a heading. */
const LINE_CHARS = 4000;

/**
 * Yields the ATX and setext headings (CommonMark 4.2 and 4.3) and HTML headings outside of code and comments, as a reader
 * sees them, each with the offset at which the text below it starts. Reads about `charsMax` characters from `start`. Leaves out headings
 * of more than `headingCharsMax` characters with their markup: reading one takes time of its length squared.
 */
export function* markdownHeadings(
  text: string,
  start: number,
  charsMax: number,
  headingCharsMax = Infinity,
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
      (atx === null ? undefined : (atx[1] ?? "")) ??
      html?.[1] ??
      (underlined ? paragraph.join(" ") : undefined);
    if (heading !== undefined) {
      const isRead = heading.length <= headingCharsMax;
      const plain = isRead ? withoutMarkup(atx === null ? heading : withoutClosing(heading)) : "";
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

/** The text of an ATX heading without the closing sequence. */
function withoutClosing(heading: string): string {
  return heading.replace(/(?:^|[ \t]+)#+[ \t]*$/, "");
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
export function* linesOf(
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
