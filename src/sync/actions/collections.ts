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
  /** Asks the service for the ids, where it can tell them. */
  ask(tier: Tier, signal: AbortSignal): Promise<AskedId>;
  /** Asks again although an id is known, for the service does not know it any more. */
  renew(tier: Tier, signal: AbortSignal): Promise<RenewedId>;
  /** Whether the configuration gives the id, so that the service need not know it any better. */
  isConfigured(tier: Tier): boolean;
  /** The listener is told of a tier whose id is another one than before: the service was reset, or restored. */
  onMoved(listener: (tier: Tier) => void): void;
  /** Runs a create: alone of its tier until the id is known, else at once. */
  guard<T>(tier: Tier, signal: AbortSignal, create: () => Promise<T>): Promise<T>;
}

/** What came of asking for a collection's id. */
export type AskedId =
  | { readonly id: string }
  | {
      readonly id: undefined;
      /** The service does not tell it; or what answered may not be the service; or nobody answered. */
      readonly why: "untold" | "unclear" | "unanswered";
    };

/** What came of asking for an id once more. */
export interface RenewedId {
  /** The id to go on with. */
  readonly id: string | undefined;
  /** The service itself gave this id just now: it has such a collection. */
  readonly isNamed: boolean;
}

/** A service that does not tell the ids may be exchanged for one that does. */
const UNTOLD_AGAIN_MS = 600_000;
/** Whoever answers in the service's place may be gone soon. */
const UNCLEAR_AGAIN_MS = 100;

/** `configured` are the ids that the configuration gives. */
export function openCollections(
  ledger: Pick<Ledger, "note" | "write"> & {
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
  /** An answer without ids, and until when it holds, by a clock that nobody sets. */
  let without: { readonly why: "untold" | "unclear"; readonly untilMs: number } | undefined;

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
    const note = (): void => ledger.sources.setCollectionId(tier, collectionId);
    if (before === collectionId) ledger.note(note);
    // To disk at once: without the id a process that dies now could never list what its first creates made. A write that
    // fails ends the daemon by itself.
    else ledger.write(note).catch(() => undefined);
    if (before !== undefined && before !== collectionId) for (const listener of listeners) listener(tier);
  };
  /** The tiers that the service names; or why it names none. */
  const fetch = async (
    signal: AbortSignal,
  ): Promise<ReadonlyMap<Tier, string> | "untold" | "unclear" | "unanswered"> => {
    const reply = await remote.collections(signal);
    // A gateway may refuse an address that it does not know as it refuses a key.
    if (reply.kind === "later" && reply.blame !== "key") return "unanswered";
    const found = reply.kind === "done" ? reply.value : "unclear";
    if (typeof found === "string") {
      const againMs = found === "untold" ? UNTOLD_AGAIN_MS : UNCLEAR_AGAIN_MS;
      without = { why: found, untilMs: performance.now() + againMs };
      return found;
    }
    for (const [each, collectionId] of found) learn(each, collectionId);
    return found;
  };
  const ask = async (tier: Tier, signal: AbortSignal): Promise<AskedId> => {
    const before = id(tier);
    if (before !== undefined) return { id: before };
    if (without !== undefined && performance.now() < without.untilMs)
      return { id: undefined, why: without.why };
    const came = await fetch(signal);
    const told = id(tier);
    if (told !== undefined) return { id: told };
    return { id: undefined, why: typeof came === "string" ? came : "untold" };
  };

  return {
    id,
    learn,
    ask,
    renew: async (tier, signal) => {
      const came = await fetch(signal);
      return { id: id(tier), isNamed: typeof came !== "string" && came.has(tier) };
    },
    isConfigured: (tier) => configured.has(tier),
    onMoved: (listener) => {
      listeners.push(listener);
    },
    guard: async (tier, signal, create) => {
      if (known.has(tier)) return create();
      const alone = await turns.run(tier, async () => {
        // Whoever finds the id known when its turn comes leaves the turn before it creates.
        if ((await ask(tier, signal)).id !== undefined) return undefined;
        return { value: await create() };
      });
      return alone === undefined ? create() : alone.value;
    },
  };
}
