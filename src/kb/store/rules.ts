import type { Finding } from "../../lib/finding.ts";

/** What must hold between the parts of a store. `words` say in the plural what is wrong where it does not. */
export interface Rule {
  /** Name of the check in findings. */
  readonly check: string;
  readonly words: string;
}

/** Rules that the stores in SQLite and in PostgreSQL share. */
export const RULES = {
  strayChunks: {
    check: "store-versions",
    words: "chunks belong to no live version of a document, but searches still find them",
  },
  missingChunks: { check: "store-versions", words: "documents lack chunks of their version" },
  wrongWords: { check: "store-words", words: "chunks are indexed under other words than they contain" },
  strayWords: { check: "store-words", words: "entries of the index of words belong to no chunk" },
  wrongPages: { check: "store-words", words: "pages of the index of words are missing or belong to no list" },
  strayVectors: { check: "store-vectors", words: "vectors belong to no chunk" },
  wrongVectors: { check: "store-vectors", words: "vectors differ in length from the others of their model" },
  unknownFiles: {
    check: "store-files",
    words: "documents were made from an uploaded file that the store does not know",
  },
} as const satisfies Record<string, Rule>;

/** Returns a warning if documents have been due for longer than a queue that works needs. */
export function overdueFindings(overdue: number, subject: string): Finding[] {
  if (overdue === 0) return [];
  const message = `${overdue} documents have waited for more than ten minutes`;
  const remedy =
    "Many scans take long to read: the number falls then. Otherwise start the service; its log says what fails.";
  return [{ check: "store-queue", level: "warning", subject, message, remedy }];
}
