import { MAIL_TYPE } from "../../wire/constants.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Remote } from "../remote/remote.ts";

/**
 * Reports whether the service reads the PDFs and images of an uploaded mail. It says so where it names the collections.
 * The ledger stores its last answer, which holds while the service is unreachable.
 */
export interface MailUploads {
  isOffered(): boolean;
  /** Asks the service if its last answer is old. The service may leave the question open; then nothing changes. */
  check(signal: AbortSignal): Promise<void>;
  /** Asks a service that did not read mails, if some were sent to it as text. */
  askAgain(signal: AbortSignal): Promise<void>;
  /** Records what the service reports by itself. */
  learn(mediaTypes: readonly string[]): void;
  /**
   * The listener is notified when the service begins to read mails: mails that were sent as text must be checked again.
   */
  onBegin(listener: () => void): void;
}

/** A service seldom learns or forgets a format: only with another version. */
const AGAIN_MS = 3_600_000;

/** Opens it with what the ledger says. `now` is a monotonic clock. */
export function openMailUploads(
  ledger: Pick<Ledger, "write"> & {
    readonly sources: Pick<Ledger["sources"], "readsMails" | "setReadsMails">;
    readonly files: Pick<Ledger["files"], "hasTextMails" | "rereadTextMails">;
  },
  remote: Pick<Remote, "collections">,
  now: () => number,
): MailUploads {
  const listeners: (() => void)[] = [];
  let isOffered = ledger.sources.readsMails();
  let askedMs: number | undefined;
  let asking: Promise<unknown> | undefined;
  let noted = Promise.resolve();
  const check = async (signal: AbortSignal): Promise<void> => {
    if (askedMs !== undefined && now() - askedMs < AGAIN_MS) return;
    asking ??= remote.collections(signal).finally(() => (asking = undefined));
    await asking;
    await noted;
  };
  const note = async (begins: boolean): Promise<void> => {
    await ledger.write(() => {
      ledger.sources.setReadsMails(begins);
      // Uploaded mails stay uploaded when it ends: what the service read of them remains.
      if (begins) ledger.files.rereadTextMails();
    });
    if (begins) for (const listener of listeners) listener();
  };

  return {
    isOffered: () => isOffered,
    check,
    askAgain: async (signal) => {
      if (!isOffered && ledger.files.hasTextMails()) await check(signal);
    },
    learn: (mediaTypes) => {
      askedMs = now();
      const before = isOffered;
      isOffered = mediaTypes.includes(MAIL_TYPE);
      if (isOffered === before) return;
      noted = note(isOffered);
      // A failed write ends the daemon by itself.
      noted.catch(() => undefined);
    },
    onBegin: (listener) => {
      listeners.push(listener);
    },
  };
}
