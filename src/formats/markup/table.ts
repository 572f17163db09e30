import { oneLine } from "../../lib/one-line.ts";
import { joinRows, type RowLine } from "./located-text.ts";

/** Further columns are cut. */
export const COLUMNS_MAX = 256;

/**
 * Renders rows as a Markdown table. The first row is the head, which Markdown requires. Omits empty rows and columns, and
 * puts each cell on one line. Empty for no rows.
 */
export function tableToMarkdown(rows: readonly (readonly string[])[]): string {
  return joinRows(tableLines(rows)).text;
}

/** A row of a table with its number, from 1. */
export interface TableRow {
  readonly row: number;
  readonly cells: readonly string[];
}

/** The same as lines, with the numbers of their rows. The line below the head belongs to it. */
export function tableLines(rows: readonly (readonly string[])[]): readonly RowLine[] {
  return numberedLines(rows.map((cells, at) => ({ row: at + 1, cells })));
}

/** The same for rows that are not all of the table. They ascend. */
export function numberedLines(rows: readonly TableRow[]): readonly RowLine[] {
  const cleaned = rows
    .map(({ row, cells }) => ({ row, cells: cells.slice(0, COLUMNS_MAX).map(cellText) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""));
  const width = cleaned.reduce((most, { cells }) => Math.max(most, cells.length), 0);
  const columns = Array.from({ length: width }, (_, at) => at).filter((at) =>
    cleaned.some(({ cells }) => (cells[at] ?? "") !== ""),
  );
  const [head, ...body] = cleaned.map(({ row, cells }) => ({
    row,
    text: `| ${columns.map((at) => cells[at] ?? "").join(" | ")} |`,
  }));
  if (head === undefined) return [];
  return [head, { row: head.row, text: `|${" --- |".repeat(columns.length)}` }, ...body];
}

function cellText(text: string): string {
  return oneLine(text).replaceAll("|", "\\|");
}
