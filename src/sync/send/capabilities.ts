import { KbsyncError } from "../../lib/failure.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Later, Reply } from "../remote/answer.ts";
import type { DeclaredCapabilities } from "../remote/collection-requests.ts";
import type { Remote } from "../remote/remote.ts";

/**
 * Abilities of the service beyond the specification. It declares it where it names the collections. The ledger stores the last
 * answer about mails and metadata, which holds while the service is unreachable.
 */
export interface Capabilities {
  /** Reports whether the service reads the PDFs and images of an uploaded mail. */
  readsMails(): boolean;
  takesMetadata(): boolean;
  /** Reports whether it takes the locations of a text, as declared to this process. */
  takesLocations(): boolean;
  /** Asks before a mail is read, if the last answer is old. The service may leave the question open; then nothing changes. */
  checkMails(signal: AbortSignal): Promise<void>;
  /** Asks before a text with locations leaves, if this process has no answer yet. Returns why none came. */
  checkLocations(signal: AbortSignal): Promise<Later | undefined>;
  /**
   * Asks again, if the last answer is old and another one would change what was sent. Asks nothing for metadata while the ids of
   * the collections are unknown: they come with the answer.
   */
  askAgain(signal: AbortSignal): Promise<void>;
  /** Records what the service declares; undefined: it names no collections. */
  learn(declared: DeclaredCapabilities | undefined): void;
  /** The listener is notified when the service begins to read mails or to take metadata: files must be checked again. */
  onBegin(listener: () => void): void;
  /** Reports that the service refused metadata that it offers to take, once per process. */
  metadataRefused(path: string, message: string): void;
}

/** A service seldom starts or stops reading mails: only with another version. */
const MAILS_AGAIN_MS = 3_600_000;
/** An answer that did not come is asked for again this soon. */
const RETRY_MS = 600_000;

/** The form that the ledger stores. */
type CapabilityLedger = Pick<Ledger, "note" | "write"> & {
  readonly sources: Pick<
    Ledger["sources"],
    | "readsMails"
    | "setReadsMails"
    | "takesMetadata"
    | "setTakesMetadata"
    | "metadataAskedMs"
    | "setMetadataAskedMs"
  >;
  readonly files: Pick<Ledger["files"], "hasTextMails" | "rereadTextMails">;
};

export interface CapabilityOptions {
  /** Reports whether the ids of the collections are known. */
  readonly hasIds: () => boolean;
  /** A monotonic time. */
  readonly now: () => number;
  /** The time of day. */
  readonly nowMs: () => number;
  /** Time after which an answer about metadata is old; Infinity: it is not asked for. */
  readonly metadataAgainMs: number;
  readonly onWarning: (error: Error) => void;
}

/** Opens it with what the ledger says. */
export function openCapabilities(
  ledger: CapabilityLedger,
  remote: Pick<Remote, "collections">,
  { hasIds, now, nowMs, metadataAgainMs, onWarning }: CapabilityOptions,
): Capabilities {
  const listeners: (() => void)[] = [];
  let mails = ledger.sources.readsMails();
  let metadata = ledger.sources.takesMetadata();
  let locations: boolean | undefined;
  let metadataAskedMs = ledger.sources.metadataAskedMs();
  let answeredMs = -Infinity;
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
  const isOldForMails = (): boolean => now() - answeredMs >= MAILS_AGAIN_MS;
  const isOldForMetadata = (): boolean => {
    if (metadataAgainMs === Infinity || !hasIds()) return false;
    const ageMs = nowMs() - (metadataAskedMs ?? -Infinity);
    // A time in the future dates from before the clock was set back.
    return ageMs < 0 || ageMs >= metadataAgainMs;
  };
  const note = async (begins: { readonly mails: boolean; readonly metadata: boolean }): Promise<void> => {
    await ledger.write(() => {
      ledger.sources.setReadsMails(mails);
      ledger.sources.setTakesMetadata(metadata);
      // Uploaded mails stay uploaded when it ends: what the service read of them remains.
      if (begins.mails) ledger.files.rereadTextMails();
    });
    if (begins.mails || begins.metadata) for (const listener of listeners) listener();
  };

  return {
    readsMails: () => mails,
    takesMetadata: () => metadata,
    takesLocations: () => locations === true,
    checkMails: async (signal) => {
      if (isOldForMails()) await ask(signal);
    },
    checkLocations: async (signal) => {
      if (locations !== undefined) return undefined;
      const reply = await ask(signal);
      // The text has not left yet.
      return reply.kind === "later" ? { ...reply, acted: "no" } : undefined;
    },
    askAgain: async (signal) => {
      if (now() - triedMs < Math.min(metadataAgainMs, RETRY_MS)) return;
      const hasUnreadMails = !mails && isOldForMails() && ledger.files.hasTextMails();
      if (hasUnreadMails || isOldForMetadata()) await ask(signal);
    },
    learn: (declared) => {
      answeredMs = now();
      if (metadataAgainMs !== Infinity) {
        const atMs = nowMs();
        metadataAskedMs = atMs;
        ledger.note(() => ledger.sources.setMetadataAskedMs(atMs));
      }
      const before = { mails, metadata };
      mails = declared?.readsMails ?? false;
      locations = declared?.takesLocations ?? false;
      // A program that answers in the service's place for a moment names no collections either.
      metadata = declared?.takesMetadata ?? metadata;
      if (mails === before.mails && metadata === before.metadata) return;
      noted = note({ mails: mails && !before.mails, metadata: metadata && !before.metadata });
      // A failed write ends the daemon by itself.
      noted.catch(() => undefined);
    },
    onBegin: (listener) => {
      listeners.push(listener);
    },
    metadataRefused: warnOnce(onWarning),
  };
}

function warnOnce(onWarning: CapabilityOptions["onWarning"]): Capabilities["metadataRefused"] {
  let isWarned = false;
  return (path, message) => {
    if (isWarned) return;
    isWarned = true;
    onWarning(
      new KbsyncError(`the service refuses the metadata of ${path}, which is sent without it: ${message}`, {
        code: "metadata_refused",
        subject: path,
        retryable: false,
        hint: "Filters do not find it by its metadata. Refusals of other files are not reported before the next start.",
      }),
    );
  };
}
