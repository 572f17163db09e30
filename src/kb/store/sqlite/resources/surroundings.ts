import type { RowRange } from "../../../index/rows.ts";
import { locationsWithin, type StoredLocation } from "../../locations.ts";
import type { Surroundings, SurroundingsQuery } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { joinText, readChunk } from "../../rows/parts.ts";

interface PartRow {
  readonly row: number;
  readonly resource: number;
  readonly start: number;
  readonly line: number | null;
  readonly headings: string;
  readonly text: string;
  readonly gap: string;
}

interface DocumentRow {
  readonly head: string;
  readonly first: number;
  readonly chunks: number;
  readonly locations: string | null;
}

/** The chunks around some chunks. The rows of a version never change, so each chunk may be added from another snapshot. */
export interface SurroundingsRead {
  /** Adds the chunks around this one. Ignores a row that does not exist. */
  add(row: number): void;
  result(): Surroundings[];
}

/** Prepares the statements on a connection of either kind. */
export function prepareSurroundings(db: Connection) {
  const selectPart = db.prepare<[number], PartRow>(
    "SELECT row, resource, start, line, headings, text, gap FROM chunk WHERE row = ?",
  );
  const selectDocument = db.prepare<[number], DocumentRow>(
    "SELECT head, first_row AS first, chunks, locations FROM resource WHERE number = ?",
  );

  return (range: RowRange, { chunksMax, charsMax }: SurroundingsQuery): SurroundingsRead => {
    const parts = new Map<number, PartRow>();
    const documents = new Map<number, DocumentRow>();
    const partAt = (row: number): PartRow | undefined => {
      const part = parts.get(row) ?? selectPart.get(row);
      if (part !== undefined) parts.set(row, part);
      return part;
    };
    const documentOf = (number: number): DocumentRow | undefined => {
      const document = documents.get(number) ?? selectDocument.get(number);
      if (document !== undefined) documents.set(number, document);
      return document;
    };
    const walk = (from: number, to: number, step: 1 | -1): void => {
      const end = step === 1 ? Math.min(to, from + chunksMax) : Math.max(to, from - chunksMax);
      let chars = 0;
      for (let row = from; row !== end && chars < charsMax; chars += partAt(row)?.text.length ?? Infinity)
        row += step;
    };
    return {
      add: (row) => {
        const part = row < range.first || row > range.last ? undefined : partAt(row);
        const document = part && documentOf(part.resource);
        if (document === undefined) return;
        walk(row, document.first, -1);
        walk(row, document.first + document.chunks - 1, 1);
      },
      result: () =>
        runsOf([...parts.values()].toSorted((a, b) => a.row - b.row)).flatMap((run) => {
          const document = documents.get(run[0]?.resource ?? -1);
          return document === undefined ? [] : [surroundingsOf(run, document)];
        }),
    };
  };
}

/** Returns the chunks in runs of one document without a gap: consecutive rows, and rows whose texts overlap. */
function runsOf(parts: readonly PartRow[]): PartRow[][] {
  const runs: PartRow[][] = [];
  for (const part of parts) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    const isNext =
      last?.resource === part.resource &&
      (last.row === part.row - 1 || part.start <= last.start + last.text.length);
    if (run !== undefined && isNext) run.push(part);
    else runs.push([part]);
  }
  return runs;
}

function surroundingsOf(run: readonly PartRow[], document: DocumentRow): Surroundings {
  const [first] = run;
  const isBegin = first?.row === document.first;
  const text = joinText(isBegin ? document.head : "", run);
  const start = isBegin ? 0 : (first?.start ?? 0);
  return {
    start,
    text,
    line: isBegin && first.line !== null ? 1 : (first?.line ?? undefined),
    locations: locationsWithin(locationsOf(document), start, start + text.length),
    isBegin,
    isEnd: run.at(-1)?.row === document.first + document.chunks - 1,
    before: isBegin ? "" : (readChunk(first?.headings ?? "", "").before ?? ""),
    chunks: run.map(({ row, start: from, text: { length } }) => ({
      ref: row,
      start: from,
      end: from + length,
    })),
  };
}

function locationsOf({ locations }: DocumentRow): readonly StoredLocation[] {
  return locations === null ? [] : (JSON.parse(locations) as StoredLocation[]); // written by this store
}
