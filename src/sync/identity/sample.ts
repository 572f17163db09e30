import { join } from "node:path";
import type { SearchResult } from "../../wire/search.ts";
import type { ActionContext, ActionSource } from "../send/context.ts";
import { readDocument } from "../scan/read/read.ts";
import type { SourceDocument } from "../scan/read/outcome.ts";
import type { ScanEntry } from "../plan/model.ts";

/** Files that are searched for before the others count as new. */
const SAMPLE = 5;
const TOP_K = 10;
/** Characters of a text that are searched for: enough for its own chunk to be among the best. */
const QUERY_CHARS = 300;

export interface OmissionOptions {
  /** Ids of the resources that the list showed, except those that a row owns. */
  readonly shown: ReadonlySet<string>;
  /** Files that have no resource according to the list. */
  readonly entries: readonly ScanEntry[];
  readonly signal: AbortSignal;
}

/**
 * Searches the collection for some of the files that have no resource according to its list. Returns why the list seems
 * to omit resources, for the operator; undefined if nothing was found, or if the service cannot be searched.
 */
export async function findOmission(
  context: ActionContext,
  source: Pick<ActionSource, "root" | "rules">,
  { shown, entries, signal }: OmissionOptions,
): Promise<string | undefined> {
  const { collection, ownerId } = source.rules.source;
  const collectionId = context.collections.id(collection);
  if (collectionId === undefined) return undefined;
  const step = Math.max(1, Math.floor(entries.length / SAMPLE));
  const sample = entries.filter((_, index) => index % step === 0).slice(0, SAMPLE);
  for (const entry of sample) {
    const path = join(source.root, entry.path);
    const read = await readDocument(path, entry, source.rules, { signal });
    if (read.kind !== "document") continue;
    const { document } = read;
    // A search sends a part of the text too.
    if ((await context.secretCheck?.(document, source.rules, undefined)) !== undefined) continue;
    const query = queryOf(document);
    if (query === "") continue;
    const where = { collectionId, ownerId };
    const reply = await context.remote.search({ query, topK: TOP_K, where }, signal);
    // Without a search there is only the list.
    if (reply.kind !== "done") return undefined;
    for (const result of reply.value.results) {
      const { resourceId } = result.payload;
      const isElsewhere = result.payload.ownerId !== ownerId || result.payload.collectionId !== collectionId;
      if (isElsewhere || shown.has(resourceId) || !isOf(document, result)) continue;
      if (!isInFlight(context, document) && (await isThere(context, resourceId, signal))) {
        return `the service's list omits documents that a search finds, such as that of ${entry.path}, so files would be sent twice; kbsync asks again by itself`;
      }
    }
  }
  return undefined;
}

function queryOf(document: SourceDocument): string {
  return document.kind === "content" ? document.content.slice(0, QUERY_CHARS).trim() : document.recipe.title;
}

/** Reports whether a search found a document's own text, or, where only the service reads that, its title. */
function isOf(document: SourceDocument, { payload }: SearchResult): boolean {
  if (document.kind !== "content") return payload.title === document.recipe.title;
  // Our own service repeats the head of a table, and fences, where it splits them.
  const { content, before = "", after = "" } = payload;
  const chunk = squeeze(content.slice(before.length, content.length - after.length));
  return chunk !== "" && squeeze(document.content).includes(chunk);
}

/** Removes what a service may store in a form of its own: blanks and accents. */
function squeeze(text: string): string {
  return text.normalize("NFC").replaceAll(/\s+/g, "");
}

/** Reports whether a create of the same bytes is in flight: the list was read before it. */
function isInFlight({ ledger }: ActionContext, { hash }: SourceDocument): boolean {
  ledger.flush();
  return ledger.intents.allOpen().some(({ observed }) => observed.hash === hash);
}

/**
 * Reports whether a resource that a search found may exist: this ledger does not know it, and the service does not
 * report it as deleted.
 */
async function isThere(
  { ledger, remote }: ActionContext,
  docId: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (ledger.files.knows(docId)) return false;
  const reply = await remote.read(docId, signal);
  return reply.kind !== "done" || !reply.value.isDeleted;
}
