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
  /** Runs a create: alone of its tier until the id is known, else at once. */
  guard<T>(tier: Tier, signal: AbortSignal, create: () => Promise<T>): Promise<T>;
}

/** `configured` are the ids that the configuration gives. */
export function openCollections(
  ledger: Ledger,
  remote: Remote,
  configured: ReadonlyMap<Tier, string>,
): Collections {
  const known = new Map<Tier, string>(configured);
  /** What this process has put into the ledger: each create tells its collection again. */
  const written = new Map<Tier, string>();
  const turns = openTurns();
  let asked = false;

  const id = (tier: Tier): string | undefined => {
    const found = known.get(tier) ?? ledger.sources.collectionId(tier);
    if (found !== undefined) known.set(tier, found);
    return found;
  };
  const learn = (tier: Tier, collectionId: string): void => {
    if (written.get(tier) === collectionId) return;
    known.set(tier, collectionId);
    written.set(tier, collectionId);
    ledger.note(() => ledger.sources.setCollectionId(tier, collectionId));
  };
  const ask = async (tier: Tier, signal: AbortSignal): Promise<string | undefined> => {
    if (id(tier) !== undefined || asked) return id(tier);
    const reply = await remote.collections(signal);
    if (reply.kind === "done") {
      asked = true;
      for (const [each, collectionId] of reply.value ?? []) learn(each, collectionId);
    }
    return id(tier);
  };

  return {
    id,
    learn,
    ask,
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
