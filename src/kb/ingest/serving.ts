import { setTimeout as pause } from "node:timers/promises";
import { modelFingerprint } from "../embed/embedding-text.ts";
import type { Index, Scope } from "../store/search-index.ts";
import { CLOSE_WAIT_MS, RETRY_AFTER_MS, WAITS } from "./model.ts";
import type { FoundModel, Model, ModelEmbedder } from "./model.ts";

/** Earlier models open at the same time; one after a single change of the model. Each takes some hundred MB. */
const EARLIER_MAX = 2;

/**
 * Selects the embedder of a scope. After a change of the model, a scope continues with the earlier one for
 * searches, until each of its chunks has a vector of the new one.
 */
export interface Serving {
  /** Returns the embedder that serves `scope`; undefined without a model, in which case searches use words alone. */
  embedderFor(this: void, scope: Scope): Promise<ModelEmbedder | undefined>;
  /** Call it after the model takes over a scope from an earlier one. */
  changedOver(this: void): void;
  close(): Promise<void>;
}

/** An earlier model that is open or being opened. */
interface EarlierModel {
  readonly found: Promise<ModelEmbedder | undefined>;
  /** Resolves when callers stop waiting for it. */
  readonly timeout: Promise<undefined>;
  /** Time of the next attempt. */
  retryFromMs: number;
}

/** `openEarlier` opens the model of an earlier fingerprint if it is available. */
export function openServing(
  model: Pick<Model, "get">,
  index: Pick<Index, "servingFingerprint" | "servingFingerprints">,
  openEarlier: ((fingerprint: string) => Promise<FoundModel>) | undefined,
  nowMs: () => number,
  waits = WAITS,
): Serving {
  const earlier = new Map<string, EarlierModel>();
  /** Whether only the current model serves. Final once true: the model of a process never changes. */
  let settled: Promise<boolean> | undefined;

  const readSettled = (fingerprint: string): Promise<boolean> => {
    const reading: Promise<boolean> = index.servingFingerprints().then(
      (all) => all.every((serving) => serving === fingerprint),
      (error: unknown) => {
        // A failed read fails only this request: the next one reads again.
        if (settled === reading) settled = undefined;
        throw error;
      },
    );
    return reading;
  };
  const startOpening = (fingerprint: string, waitMs: number): EarlierModel => {
    // If it is unavailable, the current model serves with the vectors it has.
    const found = openAs(fingerprint, openEarlier)
      .catch(() => undefined)
      .then((embedder) => {
        if (embedder === undefined) opening.retryFromMs = nowMs() + RETRY_AFTER_MS;
        return embedder;
      });
    const opening = { found, timeout: pause(waitMs, undefined, { ref: false }), retryFromMs: Infinity };
    return opening;
  };
  const earlierOne = (fingerprint: string): Promise<ModelEmbedder | undefined> => {
    let one = earlier.get(fingerprint);
    if (one === undefined && earlier.size >= EARLIER_MAX) return Promise.resolve(undefined);
    if (one === undefined || nowMs() >= one.retryFromMs) {
      one = startOpening(fingerprint, one === undefined ? waits.firstMs : waits.nextMs);
      earlier.set(fingerprint, one);
    }
    return Promise.race([one.found, one.timeout]);
  };

  return {
    embedderFor: async (scope) => {
      const current = await model.get();
      if (current === undefined) return undefined;
      settled ??= readSettled(current.fingerprint);
      if (await settled) return current;
      const serving = await index.servingFingerprint(scope);
      if (serving === undefined || serving === current.fingerprint) return current;
      return (await earlierOne(serving)) ?? current;
    },
    changedOver: () => {
      settled = undefined;
    },
    close: async () => {
      const closed = [...earlier.values()].map(async ({ found }) => (await found)?.close());
      // A model that is still opening after the wait closes once it is open.
      await Promise.race([Promise.all(closed), pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}

/** Opens the model of an earlier fingerprint; undefined: it is not available. */
async function openAs(
  fingerprint: string,
  openEarlier: ((fingerprint: string) => Promise<FoundModel>) | undefined,
): Promise<ModelEmbedder | undefined> {
  const found = await openEarlier?.(fingerprint);
  if (found === undefined || !("embed" in found)) return undefined;
  if (found.fingerprint === fingerprint) return found;
  // The same model with another version of embedded texts: queries are embedded verbatim and compare with both.
  if (modelFingerprint(found.fingerprint) === modelFingerprint(fingerprint)) {
    const queries = found.queries && { ...found.queries, fingerprint };
    return { ...found, fingerprint, ...(queries && { queries }) };
  }
  await found.close();
  return undefined;
}
