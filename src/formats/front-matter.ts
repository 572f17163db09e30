import { lazyModule } from "../lib/lazy-module.ts";
import { type DocumentFields, readFields } from "./fields.ts";

const parser = lazyModule((load) => load("yaml") as typeof import("yaml"));

/** The YAML header of a Markdown file. */
export interface FrontMatter {
  readonly title?: string;
  readonly description?: string;
  readonly fields: DocumentFields;
  /** Offset of the text after it. */
  readonly end: number;
}

/** Longer front matter is not hand-written. */
const FRONT_MATTER_CHARS_MAX = 64 * 1024;

/**
 * Reads the YAML front matter between `---` lines at the start of a text. Returns title and description (or `summary`) if
 * they are plain values, and its fields. Invalid YAML yields none of them, but the text still starts after it.
 */
export function readFrontMatter(text: string): FrontMatter | undefined {
  if (!text.startsWith("---")) return undefined;
  const head = /^---[ \t]*\r?\n/.exec(text);
  if (head === null) return undefined;
  const block = text.slice(head[0].length, head[0].length + FRONT_MATTER_CHARS_MAX);
  const close = /^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/m.exec(block);
  if (close === null) return undefined;

  const fields = parseFields(block.slice(0, close.index));
  const title = plainValue(fields["title"]);
  const description = plainValue(fields["description"]) ?? plainValue(fields["summary"]);
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    fields: readFields(fields),
    end: head[0].length + close.index + close[0].length,
  };
}

function parseFields(yaml: string): Record<string, unknown> {
  try {
    // Refuses aliases: a few lines of them can expand to gigabytes.
    const value: unknown = parser().parse(yaml, {
      logLevel: "silent",
      prettyErrors: false,
      maxAliasCount: 0,
    });
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    return isMap ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function plainValue(value: unknown): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : undefined;
}
