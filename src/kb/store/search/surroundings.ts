import { locationsWithin, type StoredLocation } from "../locations.ts";
import { joinText, readChunk } from "../rows/parts.ts";
import type { Surroundings } from "../search-index.ts";

/** A chunk with the text up to the next one. */
export interface PartRow {
  readonly row: number;
  readonly resource: number;
  readonly start: number;
  readonly line: number;
  readonly headings: string;
  readonly text: string;
  readonly gap: string;
}

/** The fields of a document that its surroundings show. */
export interface PartsDocument {
  readonly head: string;
  readonly first: number;
  readonly chunks: number;
  readonly locations: string | null;
}

/** Joins chunks to texts without a gap. `documents` has the document of each by its number. */
export function surroundingsOf(
  parts: readonly PartRow[],
  documents: ReadonlyMap<number, PartsDocument>,
): Surroundings[] {
  return runsOf(parts.toSorted((a, b) => a.row - b.row)).flatMap((run) => {
    const document = documents.get(run[0]?.resource ?? -1);
    return document === undefined ? [] : [textOf(run, document)];
  });
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

function textOf(run: readonly PartRow[], document: PartsDocument): Surroundings {
  const [first] = run;
  const isBegin = first?.row === document.first;
  const text = joinText(isBegin ? document.head : "", run);
  const start = isBegin ? 0 : (first?.start ?? 0);
  return {
    start,
    text,
    line: isBegin ? 1 : (first?.line ?? 1),
    locations: locationsWithin(locationsOf(document), start, start + text.length),
    before: isBegin ? "" : (readChunk(first?.headings ?? "", "").before ?? ""),
    chunks: run.map(({ row, start: from, text: { length } }) => ({
      ref: row,
      start: from,
      end: from + length,
    })),
  };
}

function locationsOf({ locations }: PartsDocument): readonly StoredLocation[] {
  return locations === null ? [] : (JSON.parse(locations) as StoredLocation[]); // written by this store
}
