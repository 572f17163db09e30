import { oneLine } from "../one-line.ts";

/** Further columns are cut. */
export const COLUMNS_MAX = 256;

/**
 * Renders rows as a Markdown table. The first row is the head, which Markdown requires. Omits empty rows and columns, and
 * puts each cell on one line. Empty for no rows.
 */
export function tableToMarkdown(rows: readonly (readonly string[])[]): string {
  const cleaned = rows
    .map((row) => row.slice(0, COLUMNS_MAX).map(cellText))
    .filter((row) => row.some((cell) => cell !== ""));
  const width = cleaned.reduce((most, row) => Math.max(most, row.length), 0);
  const columns = Array.from({ length: width }, (_, at) => at).filter((at) =>
    cleaned.some((row) => (row[at] ?? "") !== ""),
  );
  if (columns.length === 0) return "";
  const lines = cleaned.map((row) => `| ${columns.map((at) => row[at] ?? "").join(" | ")} |`);
  const [head = "", ...body] = lines;
  return [head, `|${" --- |".repeat(columns.length)}`, ...body].join("\n");
}

function cellText(text: string): string {
  return oneLine(text).replaceAll("|", "\\|");
}
