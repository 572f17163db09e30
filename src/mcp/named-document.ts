import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { Reached } from "./caller.ts";
import { type KnownFiles, NO_FILES } from "./known-files.ts";

/** Documents of one path that are tried for a caller who may not have them all: more sources hardly have one path. */
const TRIED_MAX = 32;

/**
 * Does something with the document that was named by a path or an id. `act` throws where the service does not show the
 * document; it may be called for several. To a caller whose key is not the ledger's, a path that leads to no document of
 * theirs is told as one that nobody has: which files are synced, and under which id, is their owner's to know. Throws
 * `document_unknown` and `document_ambiguous`.
 */
export async function withDocument<T>(
  { ownsLedger }: Pick<Reached, "ownsLedger">,
  files: KnownFiles,
  named: string,
  act: (id: string) => Promise<T>,
): Promise<T> {
  if (ownsLedger) return act(documentOf(named, files));
  const done: T[] = [];
  for (const id of files.documentsOf(named).slice(0, TRIED_MAX)) {
    try {
      done.push(await act(id));
    } catch (error) {
      if (!NOT_SHOWN.has(codeOf(error) ?? "")) throw error;
    }
    if (done.length > 1) throw ambiguous(named, "several");
  }
  const [only] = done;
  return done.length === 1 && only !== undefined ? only : act(documentOf(named, NO_FILES));
}

/** How services say that there is no such thing for a key. `service_refused`: in words of their own, as some of them do. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  "resource_not_found",
  "collection_not_found",
  "document_unknown",
  "service_refused",
]);

/** The id that a document was named by. Throws `document_unknown` and `document_ambiguous`. */
function documentOf(named: string, files: KnownFiles): string {
  const found = files.documentsOf(named);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length > 1) throw ambiguous(named, String(found.length));
  // An id holds no slash and no dot at any service; whether there is such a document is the service's to say.
  if (/^[A-Za-z0-9_-]{8,100}$/.test(named)) return named;
  throw new KbsyncError(`${named} is no document of the knowledge base`, {
    code: "document_unknown",
    subject: named,
    hint: "Paths are those of files synced on the machine where kbsync mcp runs; search tells the document_id of others.",
  });
}

function ambiguous(named: string, count: string): KbsyncError {
  return new KbsyncError(`${named} is a file of ${count} sources`, {
    code: "document_ambiguous",
    subject: named,
    hint: "Name it by its absolute path or by its document_id.",
  });
}
