import { codeOf, KbsyncError } from "../lib/failure.ts";
import type { Reached } from "./caller.ts";
import { type KnownFiles, NO_FILES } from "./known-files.ts";

/** Documents with one path that are tried for a caller who may not see them all; few sources share a path. */
const TRIED_MAX = 32;

/**
 * Calls `act` with the document that a path or an id names. `act` throws if the service does not show the document; it may
 * be called for several. For a caller without the ledger's key, a path without a visible document is reported like an
 * unknown one: the names and ids of synced files are private to their owner. Throws `document_unknown` and
 * `document_ambiguous`.
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

/** Error codes for an object that a key cannot see. `service_refused` covers services with other error formats. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  "resource_not_found",
  "collection_not_found",
  "document_unknown",
  "service_refused",
]);

/** Returns the id of a named document. Throws `document_unknown` and `document_ambiguous`. */
function documentOf(named: string, files: KnownFiles): string {
  const found = files.documentsOf(named);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length > 1) throw ambiguous(named, String(found.length));
  if (mayBeId(named)) return named;
  throw new KbsyncError(`${named} is no document of the knowledge base`, {
    code: "document_unknown",
    subject: named,
    hint: "Paths name files synced on the machine where kbsync mcp runs; search returns the ids of others.",
  });
}

/** Whether a text may be a document's id: no service uses slashes or dots in ids. The service decides whether the document exists. */
function mayBeId(named: string): boolean {
  return /^[A-Za-z0-9_-]{8,100}$/.test(named);
}

function ambiguous(named: string, count: string): KbsyncError {
  return new KbsyncError(`${named} is a file of ${count} sources`, {
    code: "document_ambiguous",
    subject: named,
    hint: "Name it by its absolute path or by its id.",
  });
}
