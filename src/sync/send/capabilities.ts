import type { Ledger } from "../ledger/ledger.ts";
import type { Later, Reply } from "./remote/answer.ts";
import type { DeclaredCapabilities } from "./remote/collection-requests.ts";
import type { Remote } from "./remote/remote.ts";

/**
 * Abilities of the service beyond the specification. It declares them where it names the collections. The ledger stores the
 * last answer about mails and metadata, which holds while the service is unreachable.
 */
export type Capabilities = ReturnType<typeof openCapabilities>;

/** An answer that did not come is asked for again this soon. */
const RETRY_MS = 600_000;

/** The part of the ledger that stores the last answer. */
type CapabilityLedger = Pick<Ledger, "write"> & {
  readonly sources: Pick<Ledger["sources"], "declared" | "setDeclared">;
  readonly files: Pick<Ledger["files"], "rereadTextMails">;
};

export interface CapabilityOptions {
  /** Reports whether the ids of the collections are known. */
  readonly hasIds: () => boolean;
  /** A monotonic time. */
  readonly now: () => number;
  /** The time of day. */
  readonly nowMs: () => number;
  /** Time after which an answer is old; Infinity: none is asked for. */
  readonly againMs: number;
}

/** Opens them with what the ledger says. */
export function openCapabilities(
  ledger: CapabilityLedger,
  remote: Pick<Remote, "collections">,
  { hasIds, now, nowMs, againMs }: CapabilityOptions,
) {
  const listeners: (() => void)[] = [];
  let { readsMails, takesMetadata, atMs } = ledger.sources.declared();
  /** As declared to this process; undefined: not yet. */
  let takesLocations: boolean | undefined;
  let triedMs = -Infinity;
  let asking: Promise<Reply<unknown>> | undefined;
  let noted = Promise.resolve();

  const ask = async (signal: AbortSignal): Promise<Reply<unknown>> => {
    triedMs = now();
    // While the service is unreachable the request waits: one is enough.
    asking ??= remote.collections(signal).finally(() => (asking = undefined));
    const reply = await asking;
    await noted;
    return reply;
  };
  const isOld = (): boolean => {
    const ageMs = nowMs() - (atMs ?? -Infinity);
    // A time in the future dates from before the clock was set back.
    return ageMs < 0 || ageMs >= againMs;
  };
  const note = async (begins: { readonly mails: boolean; readonly metadata: boolean }): Promise<void> => {
    await ledger.write(() => {
      ledger.sources.setDeclared({ readsMails, takesMetadata, atMs });
      // Uploaded mails stay uploaded when it ends: what the service read of them remains.
      if (begins.mails) ledger.files.rereadTextMails();
    });
    if (begins.mails || begins.metadata) for (const listener of listeners) listener();
  };

  return {
    /** Reports whether the service reads the PDFs and images of an uploaded mail. */
    readsMails: (): boolean => readsMails,
    takesMetadata: (): boolean => takesMetadata,
    /** Reports whether it takes the locations of a text, as declared to this process. */
    takesLocations: (): boolean => takesLocations === true,
    /**
     * Asks before a mail is read or a text with locations leaves, if this process has no answer yet. Returns why none came.
     * Nothing has left yet.
     */
    check: async (signal: AbortSignal): Promise<Later | undefined> => {
      if (takesLocations !== undefined) return undefined;
      const reply = await ask(signal);
      return reply.kind === "later" ? { ...reply, acted: "no" } : undefined;
    },
    /**
     * Asks again, if the last answer is old. Asks nothing while the ids of the collections are unknown: they come with the
     * answer.
     */
    askAgain: async (signal: AbortSignal): Promise<void> => {
      if (againMs === Infinity || !hasIds() || !isOld()) return;
      if (now() - triedMs >= Math.min(againMs, RETRY_MS)) await ask(signal);
    },
    /** Records what the service declares; undefined: it names no collections. */
    learn: (declared: DeclaredCapabilities | undefined): void => {
      const before = { readsMails, takesMetadata };
      atMs = nowMs();
      readsMails = declared?.readsMails ?? false;
      takesLocations = declared?.takesLocations ?? false;
      // A program that answers in the service's place for a moment names no collections either.
      takesMetadata = declared?.takesMetadata ?? takesMetadata;
      noted = note({
        mails: readsMails && !before.readsMails,
        metadata: takesMetadata && !before.takesMetadata,
      });
      // A failed write ends the daemon by itself.
      noted.catch(() => undefined);
    },
    /** The listener is notified when the service begins to read mails or to take metadata: files must be checked again. */
    onBegin: (listener: () => void): void => void listeners.push(listener),
  };
}
