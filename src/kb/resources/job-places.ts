import type { WhileWaiting } from "../ingest/extract/extract.ts";

/**
 * Documents that wait or work in the recogniser and take no place for that. It reads one page after another, so hundreds of
 * scans wait for hours; more of them take places. Its line has room for 1000: these, and as many requests as come at once.
 */
export const ASIDE_MAX = 400;
/** Characters of their texts in memory meanwhile: a book of which one page is a picture has a million. */
const ASIDE_CHARS_MAX = 32 * 1024 * 1024;

/** Which of the documents that are being taken in take a place. */
export interface JobPlaces {
  /** To be given to what takes a document in. */
  readonly whileWaiting: WhileWaiting;
  /** Documents under way that take no place at present. */
  lent(): number;
}

/**
 * `onLent` hears whenever a place may have come free. A document that comes back from the recogniser takes a place at once,
 * even where all are taken: they come back one after another, and none begins before that many have ended.
 */
export function openJobPlaces(onLent: () => void): JobPlaces {
  /** Those in the recogniser, longest there first. */
  const there = new Set<{ readonly heldChars: number }>();
  return {
    whileWaiting: async (work, heldChars) => {
      const document = { heldChars };
      there.add(document);
      onLent();
      try {
        return await work();
      } finally {
        there.delete(document);
      }
    },
    lent: () => {
      let count = 0;
      let chars = 0;
      for (const { heldChars } of there) {
        if (count === ASIDE_MAX) break;
        if (chars + heldChars > ASIDE_CHARS_MAX) continue;
        count += 1;
        chars += heldChars;
      }
      return count;
    },
  };
}
