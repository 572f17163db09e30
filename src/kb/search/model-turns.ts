import { openGate } from "../../lib/gate.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { Reranker } from "./reranker.ts";

/** Calls of a model at a time. A remote one has connections for these and the guests; a local one runs them one by one. */
const WIDTH = 4;
/** Further calls of accounts that have none in progress. */
const GUESTS = 4;
/** Calls that may wait: more than all requests in flight make together. */
const LINE_MAX = 16_384;

/**
 * The models as the searches of an account call them. Accounts take turns: a flood of one account's searches neither delays
 * another's nor makes its calls time out.
 */
export interface ModelTurns {
  queries(embedder: Embedder, accountId: string): Embedder;
  judge(reranker: Reranker, accountId: string): Pick<Reranker, "judge">;
}

/** `busy` creates the error of a call that finds too many waiting. */
export function openModelTurns(busy: () => Error): ModelTurns {
  const options = { width: WIDTH, guests: GUESTS, lineMax: LINE_MAX, full: busy };
  const embedding = openGate(options);
  const judging = openGate(options);
  return {
    queries: (embedder, accountId) => ({
      ...embedder,
      embed: (texts, signal) =>
        embedding.run(() => embedder.embed(texts, signal), { path: [accountId], signal }),
    }),
    judge: (reranker, accountId) => ({
      judge: (query, documents) => judging.run(() => reranker.judge(query, documents), { path: [accountId] }),
    }),
  };
}
