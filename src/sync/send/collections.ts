import type { Tier } from "../../wire/primitives.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Remote } from "./remote/remote.ts";

/** The ids of the collections. The bare specification returns an id only in the answer to a create. */
export type Collections = ReturnType<typeof openCollections>;

/**
 * Why no id is supplied. `unsupported`: the service supplies none. `unclear`: what answered may not be the service, or it, or a
 * gateway, refuses the address or the key. `unanswered`: nothing answered.
 */
type NoIds = "unsupported" | "unclear" | "unanswered";

/** No service has a resource of this id. */
const NO_RESOURCE = "kbsync";
/** A service that does not supply the ids may be replaced by one that does. */
const UNSUPPORTED_AGAIN_MS = 600_000;

/** Opens the ids of the collections. */
export function openCollections(
  ledger: Pick<Ledger, "note" | "write"> & {
    readonly sources: Pick<Ledger["sources"], "collectionId" | "setCollectionId">;
  },
  remote: Pick<Remote, "collections" | "read">,
) {
  const known = new Map<Tier, string>();
  /** The collections that this process has written to the ledger: each create reports its collection again. */
  const written = new Map<Tier, string>();
  const listeners: ((tier: Tier) => void)[] = [];
  /** Until when the service is not asked again, by a monotonic clock. */
  let unsupportedUntilMs = -Infinity;

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
    // Written to disk at once: without the id, a process that dies now could never list what its first creates made. A
    // failed write ends the daemon by itself.
    else ledger.write(note).catch(() => undefined);
    if (before !== undefined && before !== collectionId) for (const listener of listeners) listener(tier);
  };
  /** Returns the tiers that the service names, or why it names none. */
  const fetch = async (signal: AbortSignal): Promise<ReadonlyMap<Tier, string> | NoIds> => {
    const reply = await remote.collections(signal);
    if (reply.kind === "later") {
      const isRefused = reply.blame === "key" || reply.isForbidden !== undefined;
      // A gateway may refuse an unknown address in the same way as a key. It answers other requests.
      const isAnswered = isRefused && (await remote.read(NO_RESOURCE, signal)).kind !== "later";
      return isAnswered ? "unclear" : "unanswered";
    }
    const found = reply.kind === "done" ? reply.value : "unclear";
    if (found === "unsupported") unsupportedUntilMs = performance.now() + UNSUPPORTED_AGAIN_MS;
    if (typeof found === "string") return found;
    for (const [each, collectionId] of found) learn(each, collectionId);
    return found;
  };
  return {
    id,
    /** Records the id of a tier from a create's answer. */
    learn,
    /** Returns a known id, or requests the ids from the service, where it supplies them. */
    ask: async (
      tier: Tier,
      signal: AbortSignal,
    ): Promise<{ readonly id: string } | { readonly id: undefined; readonly why: NoIds }> => {
      const before = id(tier);
      if (before !== undefined) return { id: before };
      if (performance.now() < unsupportedUntilMs) return { id: undefined, why: "unsupported" };
      const came = await fetch(signal);
      const asked = id(tier);
      if (asked !== undefined) return { id: asked };
      return { id: undefined, why: typeof came === "string" ? came : "unsupported" };
    },
    /**
     * Requests the id again although one is known, because the service no longer knows that one. Returns the id to use from
     * now on, and whether the service itself named it just now, so that it has such a collection.
     */
    renew: async (
      tier: Tier,
      signal: AbortSignal,
    ): Promise<{ readonly id: string | undefined; readonly isNamed: boolean }> => {
      const came = await fetch(signal);
      return { id: id(tier), isNamed: typeof came !== "string" && came.has(tier) };
    },
    /** The listener is notified of a tier whose id has changed: the service was reset or restored. */
    onMoved: (listener: (tier: Tier) => void): void => {
      listeners.push(listener);
    },
  };
}
