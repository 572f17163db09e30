import type { OcrBox, OcrLine, OcrPage } from "../ingest/extract/ocr-layout.ts";

/** Words further apart than this many line heights are separate cells. */
const CELL_GAP = 1.4;
/** Lines that overlap by this share of the smaller one's height are in the same row. */
const ROW_OVERLAP_MIN = 0.5;
/** Cells with more words on average are columns of prose, which are read column by column. */
const CELL_WORDS_MAX = 4;
/** Fewest rows of a table or a form; a single row is a line with a gap. */
const ROWS_MIN = 2;
/** Earlier rows that are compared with a line: a column of a table is often recognised completely before the next. */
const ROWS_COMPARED = 200;

interface Cell {
  readonly text: string;
  readonly words: number;
  readonly box: OcrBox;
}

interface Row {
  /** Indexes of its lines in the page. */
  readonly lines: number[];
  readonly cells: Cell[];
  top: number;
  bottom: number;
}

/**
 * Returns the text of a page, laid out by position where that has meaning: the cells of a row of a table or form are on one line,
 * separated by ` | `; other text is in reading order, with a blank line between paragraphs. Pure.
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

/** Groups lines into rows, sorted from top to bottom. */
function rowsOf(lines: readonly OcrLine[]): Row[] {
  const rows: Row[] = [];
  for (const [at, line] of lines.entries()) {
    const cells = cellsOf(line);
    const row = rows.slice(-ROWS_COMPARED).find((each) => isInRow(each, line.box));
    if (row === undefined) {
      rows.push({ lines: [at], cells, top: line.box.top, bottom: line.box.bottom });
    } else {
      row.lines.push(at);
      row.cells.push(...cells);
      row.top = Math.min(row.top, line.box.top);
      row.bottom = Math.max(row.bottom, line.box.bottom);
    }
  }
  return rows.toSorted((a, b) => a.top - b.top);
}

function isInRow(row: Row, box: OcrBox): boolean {
  const overlap = Math.min(row.bottom, box.bottom) - Math.max(row.top, box.top);
  const height = Math.min(row.bottom - row.top, box.bottom - box.top);
  if (overlap < height * ROW_OVERLAP_MIN) return false;
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

/** Returns consecutive rows with several short cells as tables. */
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
