import type { RowRange } from "../../../index/rows.ts";
import type { Surroundings, SurroundingsQuery } from "../../search-index.ts";
import { surroundingsOf, type PartRow, type PartsDocument } from "../../search/surroundings.ts";
import type { Connection } from "../database/connection.ts";

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
  const selectDocument = db.prepare<[number], PartsDocument>(
    "SELECT head, first_row AS first, chunks, locations FROM resource WHERE number = ?",
  );

  return (range: RowRange, { chunksMax, charsMax }: SurroundingsQuery): SurroundingsRead => {
    const parts = new Map<number, PartRow>();
    const documents = new Map<number, PartsDocument>();
    const partAt = (row: number): PartRow | undefined => {
      const part = parts.get(row) ?? selectPart.get(row);
      if (part !== undefined) parts.set(row, part);
      return part;
    };
    const documentOf = (number: number): PartsDocument | undefined => {
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
      result: () => surroundingsOf([...parts.values()], documents),
    };
  };
}
