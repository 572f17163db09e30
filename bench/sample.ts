import type { JudgedDocument, JudgedSet } from "./judged-sets.ts";

/** What is asked of a set. */
export interface Sample {
  /** Default `test`, on which nothing is fitted, or else all. */
  readonly part?: string | undefined;
  /** `QUESTIONS,DOCUMENTS`: so many questions of each part, spread over it, the documents judged relevant to them, and others. */
  readonly sample?: string | undefined;
}

/** Returns the part of a set that is asked for. */
export function sampleOf(set: JudgedSet, { part, sample }: Sample): JudgedSet {
  const name = part ?? (set.parts.has("test") ? "test" : "all");
  const wanted = [...set.parts].filter(([each]) => each === name);
  if (sample === undefined) return { ...set, parts: new Map(wanted) };
  const [questions = 0, documents = 0] = sample.split(",").map(Number);
  const parts = new Map(wanted.map(([each, queries]) => [each, spread(queries, questions)]));
  const asked = [...parts.values()].flat();
  const isJudged = ({ id, content }: JudgedDocument): boolean =>
    asked.some(({ relevance }) => relevance({ resourceId: id, start: 0, end: content.length }).length > 0);
  const { judged = [], others = [] } = Object.groupBy(set.documents, (each) =>
    isJudged(each) ? "judged" : "others",
  );
  return { ...set, parts, documents: [...judged, ...spread(others, documents - judged.length)] };
}

function spread<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items;
  return items.filter(
    (_, at) => Math.floor(((at + 1) * count) / items.length) > Math.floor((at * count) / items.length),
  );
}
