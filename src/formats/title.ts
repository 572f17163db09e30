import { decodeEntities } from "./entities.ts";
import { linesOf, markdownHeadings } from "./markup/headings.ts";
import type { TextFormat } from "./markup/text-formats.ts";
import type { DocumentFields } from "./fields.ts";
import { readFrontMatter } from "./front-matter.ts";

/** The own metadata of a text. */
export interface Naming {
  readonly title?: string;
  readonly description?: string;
  /** Default: none. */
  readonly fields?: DocumentFields;
}

/** A title is near the start. The bound avoids searching a file without one to its end. */
const HEAD_CHARS = 64 * 1024;

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
