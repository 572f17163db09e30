import { setTimeout as pause } from "node:timers/promises";
import { modelFingerprint } from "../embed/embedding-text.ts";
import type { ModelPlace, ModelStore } from "../store/models.ts";
import { CLOSE_WAIT_MS, RETRY_AFTER_MS, WAITS } from "./model.ts";
import type { FoundModel, Model, ModelEmbedder } from "./model.ts";

/** Earlier models kept open at once: one, where the model was changed once. Each takes some hundred MB. */
const EARLIER_MAX = 2;

/**
 * Which embedder to use where. After the model was changed, an owner's part of a collection goes on with the one before,
 * for new documents as for searches, until every chunk there has its vector of the new one.
 */
export interface Serving {
  /** Undefined where there is no model; then words alone are searched. */
  embedderFor(this: void, place: ModelPlace): Promise<ModelEmbedder | undefined>;
  /** To be called when the model serves where another one did. */
  changedOver(this: void): void;
  /** Whether some part is still served by an earlier model; undefined before the first use. */
  isChanging(this: void): boolean;
  close(): Promise<void>;
}

/** What came of opening an earlier model, or is to. */
interface EarlierModel {
  readonly found: Promise<ModelEmbedder | undefined>;
  /** Resolves when nobody waits any longer for it. */
  readonly patience: Promise<undefined>;
  /** When it is tried again. */
  retryFromMs: number;
}

/** `openEarlier` gives the model of a fingerprint that is no longer the configured one, where that can be had. */
export function openServing(
  model: Pick<Model, "get">,
  store: Pick<ModelStore, "servingFingerprint" | "servingFingerprints">,
  openEarlier: ((fingerprint: string) => Promise<FoundModel>) | undefined,
  nowMs: () => number,
  waits = WAITS,
): Serving {
  const earlier = new Map<string, EarlierModel>();
  /** Whether only the present model serves. It stays so: the model of a process never changes. */
  let settled: Promise<boolean> | undefined;
  let isSettled = true;

  const look = (fingerprint: string): Promise<boolean> => {
    const looking: Promise<boolean> = store.servingFingerprints().then(
      (all) => {
        const isOnly = all.every((serving) => serving === fingerprint);
        // A read that a change of the serving model overtook says how it was before.
        if (settled === looking) isSettled = isOnly;
        return isOnly;
      },
      (error: unknown) => {
        // A failed read fails this request alone: the next one reads again.
        if (settled === looking) settled = undefined;
        throw error;
      },
    );
    return looking;
  };
  const open = async (fingerprint: string): Promise<ModelEmbedder | undefined> => {
    const found = await openEarlier?.(fingerprint);
    if (found === undefined || !("embed" in found)) return undefined;
    if (found.fingerprint === fingerprint) return found;
    // The same model that got other texts: a query is embedded as it is, and compares with either.
    if (modelFingerprint(found.fingerprint) === modelFingerprint(fingerprint)) {
      const queries = found.queries && { ...found.queries, fingerprint };
      return { ...found, fingerprint, ...(queries && { queries }) };
    }
    await found.close();
    return undefined;
  };
  const begin = (fingerprint: string, waitMs: number): EarlierModel => {
    // Not to be had for now: the present one serves as far as it has come.
    const found = open(fingerprint)
      .catch(() => undefined)
      .then((embedder) => {
        if (embedder === undefined) begun.retryFromMs = nowMs() + RETRY_AFTER_MS;
        return embedder;
      });
    const begun = { found, patience: pause(waitMs, undefined, { ref: false }), retryFromMs: Infinity };
    return begun;
  };
  const earlierOne = (fingerprint: string): Promise<ModelEmbedder | undefined> => {
    let one = earlier.get(fingerprint);
    if (one === undefined && earlier.size >= EARLIER_MAX) return Promise.resolve(undefined);
    if (one === undefined || nowMs() >= one.retryFromMs) {
      one = begin(fingerprint, one === undefined ? waits.firstMs : waits.nextMs);
      earlier.set(fingerprint, one);
    }
    return Promise.race([one.found, one.patience]);
  };

  return {
    embedderFor: async (place) => {
      const present = await model.get();
      if (present === undefined) return undefined;
      settled ??= look(present.fingerprint);
      if (await settled) return present;
      const serving = await store.servingFingerprint(place);
      if (serving === undefined || serving === present.fingerprint) return present;
      return (await earlierOne(serving)) ?? present;
    },
    changedOver: () => {
      settled = undefined;
    },
    isChanging: () => !isSettled,
    close: async () => {
      const closed = [...earlier.values()].map(async ({ found }) => (await found)?.close());
      // What is still being opened then is closed when it comes.
      await Promise.race([Promise.all(closed), pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}
