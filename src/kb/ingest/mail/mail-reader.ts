import { endFailure, endWords, isTemporary } from "../../../lib/capped/end-failure.ts";
import { type AskOptions, openCappedPool } from "../../../lib/capped/pool.ts";
import type { CappedEnd } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import type { Mail } from "../../../formats/markup/mail.ts";
import { entryUrl } from "../../../lib/package.ts";
import type { MailFailure, MailPart, MailRequest } from "./mail-child.ts";

const LIMITS = {
  /** One suffices: a mail takes milliseconds without its attachments. */
  processes: 1,
  /** The largest upload, decoded, in the copies that a parser makes. */
  memoryMb: 512,
  /** A megabyte takes about 50 ms. */
  cpuMs: 20_000,
  idleMs: 10_000,
};

/** Parses e-mails in a child process with capped memory and time. */
export interface MailReader {
  /** Rejects with `mail_unreadable`, `extraction_failed`, `extractor_busy`, or the signal's reason. */
  read(mail: MailRequest, options: AskOptions): Promise<Pick<Mail, "markdown" | "attachments">>;
  /** Terminates the child process. A mail in flight fails. */
  close(): void;
}

/** Opens the reader. The first mail starts the child process. */
export function openMailReader(): MailReader {
  const pool = openCappedPool<MailRequest, MailPart, MailFailure>(
    { module: entryUrl("kb/ingest/mail/mail-child"), failure: mailError },
    { ...LIMITS, guests: 1 },
  );
  return {
    read: async (request, options) => {
      const parts = await pool.ask(request, options);
      const mail = parts.find((part) => part.kind === "mail");
      const attachments = parts.flatMap((part) =>
        part.kind === "attachment" ? [{ ...part, bytes: Buffer.from(part.bytes) }] : [],
      );
      return { markdown: mail?.markdown ?? "", attachments };
    },
    close: () => pool.close(),
  };
}

function mailError(code: MailFailure | CappedEnd, { path: subject }: MailRequest, detail: string): Error {
  const facts = { subject, cause: new Error(detail) };
  if (isTemporary(code)) return endFailure(code, endWords("reading the e-mail", LIMITS, detail), facts);
  const words = {
    ...endWords("reading it", LIMITS, detail),
    deep: "its parts are nested too deeply",
    damaged: "it is damaged",
  }[code];
  return new KbsyncError(`the e-mail is not taken: ${words}`, { ...facts, code: "mail_unreadable" });
}
