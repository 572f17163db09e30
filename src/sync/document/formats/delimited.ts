import { recordLines, type TableKind } from "../../../lib/markup/record-lines.ts";
import { decodeText } from "../text.ts";
import type { Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Longer tables are data bases: they stay as they are. */
const TABLE_CHARS_MAX = 4_000_000;

/** Reads CSV and TSV: each row with the names of its columns, where the first row names them; else the text as it is. */
export function readTable(bytes: Buffer, kind: TableKind): Reading {
  const decoded = decodeText(bytes);
  if (decoded.kind !== "text") throw new ConversionRefusal(decoded.reason);
  const { text } = decoded;
  const lines = text.length > TABLE_CHARS_MAX ? undefined : recordLines(text, kind);
  return lines === undefined ? { markdown: text, isExact: true } : { markdown: lines };
}
