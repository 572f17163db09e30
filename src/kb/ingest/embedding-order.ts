import type { Tier } from "../../wire/primitives.ts";
import type { ChunkContext, Index, LackingDocument, LackingQuery } from "../store/search-index.ts";

/**
 * The order in which documents are embedded: accounts take turns; of each, the newest change first, and short documents before long
 * ones that changed in the same minute. What was examined once is not examined again.
 */
export interface EmbeddingOrder {
  /** Adds what was written since the last call. */
  refresh(): Promise<void>;
  /** Returns the next `limit` chunks of one account. Empty: none lacks vectors. */
  next(limit: number): Promise<readonly ChunkContext[]>;
}

/** Chunks of a scope that are not examined yet. */
interface Unexamined {
  readonly first: number;
  readonly before: number;
  /** No document among them has changed later. */
  readonly changedAt: string;
}

interface AccountWork {
  /** By ascending time: the last one is examined next. */
  readonly unexamined: Unexamined[];
  /** The best one last. */
  readonly documents: LackingDocument[];
}

/** Orders the documents of these tiers that lack vectors of a model. */
export function openEmbeddingOrder(
  index: Pick<Index, "embeddingScopes" | "documentsLacking" | "chunksLacking">,
  tiers: readonly Tier[],
  lacking: Pick<LackingQuery, "lacks" | "fingerprint">,
): EmbeddingOrder {
  /** The ref behind the last chunk that was added, by the first ref of the scope. */
  const ends = new Map<number, number>();
  /** In the order of their turns. */
  const accounts = new Map<string, AccountWork>();
  const workOf = (accountId: string): AccountWork => {
    const work = accounts.get(accountId) ?? { unexamined: [], documents: [] };
    accounts.set(accountId, work);
    return work;
  };

  /** Examines the newest chunks until no unexamined document can precede the best one. */
  const examine = async (accountId: string, { unexamined, documents }: AccountWork): Promise<void> => {
    for (let newest = unexamined.at(-1); newest !== undefined; newest = unexamined.at(-1)) {
      const best = documents.at(-1);
      if (best !== undefined && minuteOf(best) > minuteOf(newest)) return;
      const { first, before } = newest;
      const found = await index.documentsLacking({ ...lacking, accountId, first, before });
      unexamined.pop();
      if (found.downTo > first) {
        const changedAt = found.documents.at(-1)?.changedAt ?? newest.changedAt;
        unexamined.push({ first, before: found.downTo, changedAt });
        unexamined.sort((a, b) => compare(a.changedAt, b.changedAt));
      }
      if (found.documents.length === 0) continue;
      documents.push(...found.documents);
      documents.sort(byUrgency);
    }
  };

  const take = async (accountId: string, work: AccountWork, limit: number): Promise<ChunkContext[]> => {
    const { documents } = work;
    const taken: ChunkContext[] = [];
    for (;;) {
      await examine(accountId, work);
      const document = documents.pop();
      if (document === undefined) return taken;
      const { first, last } = document;
      const left = limit - taken.length;
      const chunks = await index.chunksLacking({ ...lacking, accountId, first, last, limit: left });
      taken.push(...chunks);
      if (taken.length < limit) continue;
      const end = chunks.at(-1)?.ref ?? last;
      if (end < last) {
        documents.push({ ...document, first: end + 1, chunks: document.chunks - left });
        documents.sort(byUrgency);
      }
      return taken;
    }
  };

  return {
    refresh: async () => {
      const changed = new Set<AccountWork>();
      for (const { accountId, first, end, changedAt } of await index.embeddingScopes(tiers)) {
        const from = ends.get(first) ?? first;
        if (end <= from) continue;
        ends.set(first, end);
        const work = workOf(accountId);
        work.unexamined.push({ first: from, before: end, changedAt });
        changed.add(work);
      }
      for (const { unexamined } of changed) unexamined.sort((a, b) => compare(a.changedAt, b.changedAt));
    },
    next: async (limit) => {
      for (const [accountId, work] of accounts) {
        const chunks = await take(accountId, work, limit);
        accounts.delete(accountId);
        if (chunks.length === 0) continue;
        // Behind the others.
        accounts.set(accountId, work);
        return chunks;
      }
      return [];
    },
  };
}

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);
/** The minute of a time in the wire format. */
const minuteOf = ({ changedAt }: { readonly changedAt: string }): string => changedAt.slice(0, 16);
/** Sorts the most urgent document last. */
const byUrgency = (a: LackingDocument, b: LackingDocument): number =>
  compare(minuteOf(a), minuteOf(b)) || b.chunks - a.chunks || compare(a.changedAt, b.changedAt);
