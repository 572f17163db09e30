import type { ModelPlace, ModelStore } from "../store/models.ts";
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

/** `openEarlier` gives the model of a fingerprint that is no longer the configured one, where that can be had. */
export function openServing(
  model: Model,
  store: Pick<ModelStore, "servingFingerprint" | "servingFingerprints">,
  openEarlier: ((fingerprint: string) => Promise<FoundModel>) | undefined,
): Serving {
  const earlier = new Map<string, Promise<ModelEmbedder | undefined>>();
  /** Whether only the present model serves. It stays so: the model of a process never changes. */
  let settled: Promise<boolean> | undefined;
  let isSettled = true;

  const look = async (fingerprint: string): Promise<boolean> => {
    const all = await store.servingFingerprints();
    isSettled = all.every((serving) => serving === fingerprint);
    return isSettled;
  };
  const open = async (fingerprint: string): Promise<ModelEmbedder | undefined> => {
    const found = await openEarlier?.(fingerprint);
    if (found === undefined || !("embed" in found)) return undefined;
    if (found.fingerprint === fingerprint) return found;
    await found.close();
    return undefined;
  };
  const earlierOne = (fingerprint: string): Promise<ModelEmbedder | undefined> => {
    let found = earlier.get(fingerprint);
    if (found === undefined) {
      if (earlier.size >= EARLIER_MAX) return Promise.resolve(undefined);
      found = open(fingerprint).catch(() => undefined); // not to be had: the present one serves as far as it has come
      earlier.set(fingerprint, found);
    }
    return found;
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
      for (const found of earlier.values()) await (await found)?.close();
    },
  };
}
