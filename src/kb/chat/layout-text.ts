import type { OcrBox, OcrLine, OcrPage } from "../ingest/extract/ocr-layout.ts";

/** Words further apart than so many heights of their line stand in cells of their own. */
const CELL_GAP = 1.4;
/** Lines that overlap by this share of the lower one's height stand beside each other. */
const BESIDE = 0.5;
/** Cells of more words on average are columns of prose, which is read column by column. */
const CELL_WORDS_MAX = 4;
/** Rows that make a table or a form; one alone is a line with a gap. */
const ROWS_MIN = 2;
/** Rows looked back at for one that a line stands beside: a column of a table is often read to its end first. */
const LOOKED_BACK = 200;

interface Cell {
  readonly text: string;
  readonly words: number;
  readonly box: OcrBox;
}

interface Row {
  /** Places of its lines in the page. */
  readonly lines: number[];
  readonly cells: Cell[];
  top: number;
  bottom: number;
}

/**
 * The text of a page with its positions kept where they mean something: the cells of a table's or a form's row stand in
 * one line, with ` | ` between them; all else as it is read, with a blank line between paragraphs. Pure.
 */
export function layoutText({ lines }: Pick<OcrPage, "lines">): string {
  const tables = tablesOf(rowsOf(lines));
  const tableOf = new Map(
    tables.flatMap((rows) => rows.flatMap((row) => row.lines.map((at) => [at, rows] as const))),
  );
  const written = new Set<Row[]>();
  let text = "";
  let wasTable = false;
  for (const [at, line] of lines.entries()) {
    const table = tableOf.get(at);
    if (table !== undefined && written.has(table)) continue;
    const breaks = table !== undefined || wasTable || line.startsParagraph;
    if (text !== "") text += breaks ? "\n\n" : "\n";
    text += table === undefined ? line.text : table.map(rowText).join("\n");
    if (table !== undefined) written.add(table);
    wasTable = table !== undefined;
  }
  return text;
}

function rowText({ cells }: Row): string {
  return cells
    .toSorted((a, b) => a.box.left - b.box.left)
    .map(({ text }) => text)
    .join(" | ");
}

/** Lines that stand beside each other are one row. By height on the page. */
function rowsOf(lines: readonly OcrLine[]): Row[] {
  const rows: Row[] = [];
  for (const [at, line] of lines.entries()) {
    const cells = cellsOf(line);
    const beside = rows.slice(-LOOKED_BACK).find((row) => isBeside(row, line.box));
    if (beside === undefined) {
      rows.push({ lines: [at], cells, top: line.box.top, bottom: line.box.bottom });
    } else {
      beside.lines.push(at);
      beside.cells.push(...cells);
      beside.top = Math.min(beside.top, line.box.top);
      beside.bottom = Math.max(beside.bottom, line.box.bottom);
    }
  }
  return rows.toSorted((a, b) => a.top - b.top);
}

function isBeside(row: Row, box: OcrBox): boolean {
  const overlap = Math.min(row.bottom, box.bottom) - Math.max(row.top, box.top);
  const height = Math.min(row.bottom - row.top, box.bottom - box.top);
  if (overlap < height * BESIDE) return false;
  return row.cells.every((cell) => cell.box.right <= box.left || cell.box.left >= box.right);
}

function cellsOf({ words, box }: OcrLine): Cell[] {
  const gap = (box.bottom - box.top) * CELL_GAP;
  const cells: { text: string; words: number; box: OcrBox }[] = [];
  for (const word of words) {
    const last = cells.at(-1);
    if (last === undefined || word.box.left - last.box.right > gap) {
      cells.push({ text: word.text, words: 1, box: word.box });
    } else {
      last.text += ` ${word.text}`;
      last.words += 1;
      last.box = { ...last.box, right: word.box.right };
    }
  }
  return cells;
}

/** Runs of rows with several short cells. */
function tablesOf(rows: readonly Row[]): Row[][] {
  const tables: Row[][] = [];
  let run: Row[] = [];
  const end = (): void => {
    const cells = run.flatMap((row) => row.cells);
    const words = cells.reduce((sum, cell) => sum + cell.words, 0);
    if (run.length >= ROWS_MIN && words <= cells.length * CELL_WORDS_MAX) tables.push(run);
    run = [];
  };
  for (const row of rows) {
    if (row.cells.length > 1) run.push(row);
    else end();
  }
  end();
  return tables;
}
