import { nearTerms } from "../../../lexical/near-terms.ts";
import { LANGUAGES } from "../../../lexical/languages.ts";
import { queryWords, type QueryWords } from "../../../lexical/word-match.ts";
import type { PostingList } from "../../../index/words/postings.ts";
import type { WordSnapshot } from "../../../index/words/query-terms.ts";
import { hashOf } from "../../../index/words/term-hash.ts";
import {
  compoundTerms,
  inLanguagesOf,
  replaceUnknown,
  unknownTerms,
  withCompounds,
  type NearFound,
} from "../../search/near-words.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";
import {
  pageKey,
  PagesMissing,
  readParts,
  readRemovals,
  withPages,
  type MarkedPart,
  type OpenScope,
  type WordCaches,
} from "./word-parts.ts";

/** The index of words of a scope in one snapshot. */
export interface Words {
  readonly snapshot: WordSnapshot;
  /** Fetches the lists of terms. The snapshot has those alone. */
  readonly fetch: (terms: readonly string[]) => Promise<void>;
}

/** Opens the index of words of a scope. */
export async function openWords(tx: Transaction, caches: WordCaches, target: Target): Promise<Words> {
  const { parts } = await openScope(tx, caches, target);
  const live = parts.filter(({ part, removed }) => removed.count() < part.rows);
  const runs = live.filter(({ kind }) => kind === "run");
  /** The lists of fetched terms, by `listKey`; undefined: the run lacks the term. */
  const lists = new Map<string, PostingList | undefined>();
  const listOf =
    (run: number) =>
    (hash: number): PostingList | undefined => {
      const key = listKey(run, hash);
      if (!lists.has(key)) throw new TypeError("a search reads a term that it has not fetched");
      return lists.get(key);
    };
  return {
    snapshot: {
      parts: live.map(({ kind, number, part, removed }) => ({
        part: kind === "segment" ? part : { ...part, list: listOf(number) },
        removed,
      })),
      chunks: target.chunks,
      words: target.words,
    },
    fetch: (terms) => fetchLists(tx, caches, target.accountId, runs, terms.map(hashOf), lists),
  };
}

/** Reads a query, with its typing errors replaced, and fetches the lists of its words. */
export async function fetchWords({ snapshot, fetch }: Words, query: string): Promise<QueryWords> {
  const english = queryWords(query);
  await fetch([...english.terms, ...LANGUAGES.map(({ mark }) => mark)]);
  const written = inLanguagesOf(snapshot, english, query);
  if (written !== english) await fetch(written.terms);
  await fetch(compoundTerms(snapshot, written, query));
  const words = withCompounds(snapshot, written, query);
  await fetch(unknownTerms(snapshot, words).flatMap(nearTerms));
  const found: NearFound = { near: new Map() };
  for (;;) {
    const replaced = replaceUnknown(snapshot, words, found);
    if (replaced !== undefined) return replaced;
  }
}

async function openScope(tx: Transaction, caches: WordCaches, target: Target): Promise<OpenScope> {
  const { scope, merged, nextSequence, chunks } = target;
  const known = caches.scopes.get(scope);
  // Chunks are added with higher sequences alone, so a scope that has the same three has the same parts.
  const state = `${merged}/${nextSequence}/${chunks}`;
  if (known?.state === state) return known;
  const removals = await readRemovals(tx, target);
  const opened = { state, parts: await readParts(tx, target, known?.parts ?? [], removals) };
  caches.scopes.set(
    scope,
    opened,
    opened.parts.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  return opened;
}

const listKey = (run: number, hash: number): string => `${run}/${hash}`;

/** A list of a run that has yet to be read. */
interface Pending {
  readonly run: MarkedPart;
  readonly hash: number;
}

/** Fetches lists of runs: all first pages at once, then those to which lists go on. */
async function fetchLists(
  tx: Transaction,
  caches: WordCaches,
  accountId: string,
  runs: readonly MarkedPart[],
  hashes: readonly number[],
  into: Map<string, PostingList | undefined>,
): Promise<void> {
  let pending: Pending[] = [];
  for (const run of runs) {
    for (const hash of hashes) {
      const key = listKey(run.number, hash);
      if (into.has(key)) continue;
      const known = caches.lists.get(key);
      if (known === undefined) pending.push({ run, hash });
      else into.set(key, known);
    }
  }
  const pages = new Map<string, Buffer | undefined>();
  while (pending.length > 0) {
    const missing: PagesMissing[] = [];
    pending = pending.filter(({ run, hash }) => {
      const key = listKey(run.number, hash);
      try {
        const list = withPages(pages, () => run.part.list(hash));
        into.set(key, list);
        // With what is made of it for looking up (postings.ts).
        if (list !== undefined) caches.lists.set(key, list, list.bytes.length + list.count / 4);
        return false;
      } catch (error) {
        if (!(error instanceof PagesMissing)) throw error;
        missing.push(error);
        return true;
      }
    });
    if (missing.length > 0) await fetchPages(tx, accountId, missing, pages);
  }
}

/** Fetches pages of runs. */
export async function fetchPages(
  tx: Transaction,
  accountId: string,
  missing: readonly Pick<PagesMissing, "run" | "first" | "last">[],
  into: Map<string, Buffer | undefined>,
): Promise<void> {
  const wanted = new Map<string, { readonly run: number; readonly page: number }>();
  for (const { run, first, last } of missing) {
    for (let page = first; page <= last; page++) {
      const key = pageKey(run, page);
      if (into.has(key)) continue;
      into.set(key, undefined);
      wanted.set(key, { run, page });
    }
  }
  const pages = [...wanted.values()];
  const rows = await tx.all<{ readonly run: number; readonly page: number; readonly data: Buffer }>(
    `SELECT run, page, data FROM word_page
    JOIN unnest(@runs::bigint[], @pages::integer[]) AS wanted (run, page) USING (run, page)
    WHERE account_id = @accountId`,
    { accountId, runs: pages.map(({ run }) => run), pages: pages.map(({ page }) => page) },
  );
  for (const { run, page, data } of rows) into.set(pageKey(run, page), data);
}
