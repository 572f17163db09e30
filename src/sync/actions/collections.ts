import { openTurns } from "../../lib/turns.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Remote } from "../remote/remote.ts";

/**
 * The ids of the collections. The bare specification tells an id only in the answer to a create; without it a lost
 * answer cannot be settled by the list. So while a tier's id is unknown one create is on its way at a time.
 */
export interface Collections {
  id(tier: Tier): string | undefined;
  /** Says the id of a tier when a create's answer told it. */
  learn(tier: Tier, collectionId: string): void;
  /** Asks the service for the ids, where it can tell them; undefined if it cannot. */
  ask(tier: Tier, signal: AbortSignal): Promise<string | undefined>;
  /** Asks again although an id is known, for the service does not know it any more. The id to go on with. */
  renew(tier: Tier, signal: AbortSignal): Promise<string | undefined>;
  /** Whether the configuration gives the id, so that the service need not know it any better. */
  isConfigured(tier: Tier): boolean;
  /** The listener is told of a tier whose id is another one than before: the service was reset, or restored. */
  onMoved(listener: (tier: Tier) => void): void;
  /** Runs a create: alone of its tier until the id is known, else at once. */
  guard<T>(tier: Tier, signal: AbortSignal, create: () => Promise<T>): Promise<T>;
}

/** `configured` are the ids that the configuration gives. */
export function openCollections(
  ledger: Pick<Ledger, "note"> & {
    readonly sources: Pick<Ledger["sources"], "collectionId" | "setCollectionId">;
  },
  remote: Pick<Remote, "collections">,
  configured: ReadonlyMap<Tier, string>,
): Collections {
  const known = new Map<Tier, string>(configured);
  /** What this process has put into the ledger: each create tells its collection again. */
  const written = new Map<Tier, string>();
  const listeners: ((tier: Tier) => void)[] = [];
  const turns = openTurns();
  let asked = false;

  const id = (tier: Tier): string | undefined => {
    const found = known.get(tier) ?? ledger.sources.collectionId(tier);
    if (found !== undefined) known.set(tier, found);
    return found;
  };
  const learn = (tier: Tier, collectionId: string): void => {
    if (written.get(tier) === collectionId) return;
    const before = id(tier);
    known.set(tier, collectionId);
    written.set(tier, collectionId);
    ledger.note(() => ledger.sources.setCollectionId(tier, collectionId));
    if (before !== undefined && before !== collectionId) for (const listener of listeners) listener(tier);
  };
  const fetch = async (signal: AbortSignal): Promise<void> => {
    const reply = await remote.collections(signal);
    if (reply.kind !== "done") return;
    asked = true;
    for (const [each, collectionId] of reply.value ?? []) learn(each, collectionId);
  };
  const ask = async (tier: Tier, signal: AbortSignal): Promise<string | undefined> => {
    if (id(tier) === undefined && !asked) await fetch(signal);
    return id(tier);
  };

  return {
    id,
    learn,
    ask,
    renew: async (tier, signal) => {
      await fetch(signal);
      return id(tier);
    },
    isConfigured: (tier) => configured.has(tier),
    onMoved: (listener) => {
      listeners.push(listener);
    },
    guard: async (tier, signal, create) => {
      if (known.has(tier)) return create();
      const alone = await turns.run(tier, async () => {
        // Whoever finds the id known when its turn comes leaves the turn before it creates.
        if ((await ask(tier, signal)) !== undefined) return undefined;
        return { value: await create() };
      });
      return alone === undefined ? create() : alone.value;
    },
  };
}
