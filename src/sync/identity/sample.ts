import { join } from "node:path";
import type { SearchResult } from "../../wire/search.ts";
import type { ActionContext } from "../send/context.ts";
import { readDocument } from "../scan/read/read.ts";
import type { SourceDocument } from "../scan/read/outcome.ts";
import type { ScanEntry } from "../plan/model.ts";
import type { ApplySource } from "./apply.ts";
import { sampleOf } from "./presence.ts";

/** So many of the oldest files, and as many of all, are searched for before the others count as new. */
const SAMPLE = 5;
const TOP_K = 10;
/** Failed searches before a cheap request shows whether the service fails on them alone. */
const SEARCH_TRIES = 10;
/** Characters of a text that are searched for: enough for its own chunk to be among the best. */
const QUERY_CHARS = 300;

type SampledSource = Pick<ApplySource, "id" | "root" | "rules" | "isBusy">;

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
  source: SampledSource,
  { shown, entries, signal }: OmissionOptions,
): Promise<string | undefined> {
  const { collection, ownerId } = source.rules.source;
  const collectionId = context.collections.id(collection);
  if (collectionId === undefined) return undefined;
  for (const entry of filesOf(entries)) {
    const path = join(source.root, entry.path);
    const read = await readDocument(path, entry, source.rules, { signal });
    if (read.kind !== "document") continue;
    const { document } = read;
    // A search sends a part of the text too.
    if ((await context.secretCheck?.(document, source.rules, undefined)) !== undefined) continue;
    const query = queryOf(document);
    if (query === "") continue;
    const where = { collectionId, ownerId };
    const results = await search(context, { query, topK: TOP_K, where }, signal);
    // Without a search there is only the list.
    if (results === undefined) return undefined;
    for (const result of results) {
      const { resourceId } = result.payload;
      const isElsewhere = result.payload.ownerId !== ownerId || result.payload.collectionId !== collectionId;
      if (isElsewhere || shown.has(resourceId) || !isOf(document, result)) continue;
      if (!isInFlight(context, source, document) && (await isThere(context, resourceId, signal))) {
        return `the service's list omits documents that a search finds, such as that of ${entry.path}, so files would be sent twice; kbsync asks again by itself`;
      }
    }
  }
  return undefined;
}

/** Returns the files that were there first, which most likely have a resource, and some from first to last. */
function filesOf(entries: readonly ScanEntry[]): Iterable<ScanEntry> {
  const oldest = entries.toSorted((a, b) => a.mtimeMs - b.mtimeMs).slice(0, SAMPLE);
  return new Set([...oldest, ...sampleOf(entries, SAMPLE)]);
}

/**
 * Searches until the service answers. Returns undefined if it refuses searches, or fails on them alone: while it is away, a cheap
 * request is not answered either.
 */
async function search(
  { remote }: ActionContext,
  query: Parameters<ActionContext["remote"]["search"]>[0],
  signal: AbortSignal,
): Promise<readonly SearchResult[] | undefined> {
  for (let tries = 1; ; tries += 1) {
    const reply = await remote.search(query, signal);
    if (reply.kind === "done") return reply.value.results;
    if (reply.kind !== "later") return undefined;
    // The gate has waited.
    if (tries % SEARCH_TRIES === 0 && (await remote.collections(signal)).kind === "done") return undefined;
  }
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

/**
 * Reports whether a create of the same bytes is in flight: the list was read before it. One that ended without an answer is none:
 * the list should show what it made.
 */
function isInFlight({ ledger }: ActionContext, source: SampledSource, { hash }: SourceDocument): boolean {
  ledger.flush();
  return ledger.intents
    .allOpen()
    .some(
      ({ observed, source: id, path }) => observed.hash === hash && (id !== source.id || source.isBusy(path)),
    );
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
