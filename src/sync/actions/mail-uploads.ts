import { MAIL_TYPE } from "../../wire/upload.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Remote } from "../remote/remote.ts";

/**
 * Whether the service reads the PDFs and images of an uploaded mail. It says so where it names the collections; the ledger keeps
 * its last word, so that one that is away is taken for what it was.
 */
export interface MailUploads {
  isOffered(): boolean;
  /** Asks the service where its last word is old. It may leave the question open: then nothing changes. */
  check(signal: AbortSignal): Promise<void>;
  /** Asks a service that did not read mails, if some were sent to it as text. */
  askAgain(signal: AbortSignal): Promise<void>;
  /** What the service says by itself. */
  learn(mediaTypes: readonly string[]): void;
  /** The listener is told when the service begins to read mails: mails that were sent as text are to be looked at again. */
  onBegin(listener: () => void): void;
}

/** A service seldom learns or forgets how to read a format: with another version. */
const AGAIN_MS = 3_600_000;

/** Opens it with what the ledger says. `now` is a clock that nobody sets. */
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
      // Those that are uploaded stay so when it ends: what the service read of them is there.
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
      // A write that fails ends the daemon by itself.
      noted.catch(() => undefined);
    },
    onBegin: (listener) => {
      listeners.push(listener);
    },
  };
}
