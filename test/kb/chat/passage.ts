import type { Passage } from "../../../src/kb/chat/passage.ts";

/** Makes a passage of a text without lines, locations and headings. */
export function passageOf(number: number, text: string, fields: Partial<Passage> = {}): Passage {
  const start = fields.start ?? 0;
  return {
    number,
    ref: number,
    id: `c${number}`,
    resourceId: `r${number}`,
    title: `T${number}`,
    score: 0.5,
    start,
    end: start + text.length,
    text,
    line: 1,
    locations: [],
    headings: [],
    collectionId: "c",
    ownerId: "ann",
    version: 1,
    sha256: undefined,
    url: null,
    ...fields,
  };
}
