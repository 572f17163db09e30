import readExcel from "read-excel-file/node";
import { joinLocated, joinRows, locatedAt, type LocatedText, locationName } from "../markup/located-text.ts";
import { tableLines } from "../markup/table.ts";
import { type Archive, refuseBombs } from "./archive.ts";
import type { Reading } from "./conversion.ts";
import { packageTitle } from "./office-package.ts";

/** Maximum for the rows of all sheets: a search engine is useful for far fewer. */
const ROWS_MAX = 100_000;

/** Reads an Excel workbook: each sheet as a table under its name, with the last computed values of formulas. */
export async function readXlsx(bytes: Buffer, archive: Archive): Promise<Reading> {
  await refuseBombs(bytes, (name) => /\.(?:xml|rels)$/i.test(name));
  const sheets = await readExcel(bytes);
  const parts: LocatedText[] = [];
  let rowsLeft = ROWS_MAX;
  for (const { sheet, data } of sheets) {
    const taken = data.slice(0, rowsLeft);
    rowsLeft -= taken.length;
    const name = locationName(sheet);
    const location = name === "" ? {} : { sheet: name };
    const table = joinRows(tableLines(taken.map((row) => row.map(cellText))), location);
    const leftOut = data.length - taken.length;
    if (table.text !== "") parts.push(locatedAt(`## ${sheet.trim()}`, location), table);
    if (leftOut > 0)
      parts.push(locatedAt(`(${leftOut} more rows of the sheet ${sheet.trim()} are left out.)`, location));
  }
  return { title: await packageTitle(archive), ...joinLocated(parts) };
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return dateText(value);
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : "";
}

/** Formats a date, without its time if it has none. */
function dateText(date: Date): string {
  if (Number.isNaN(date.getTime())) return "";
  const text = date.toISOString().slice(0, 19).replace("T", " ");
  return text.endsWith(" 00:00:00") ? text.slice(0, 10) : text;
}
