import { readFile } from "node:fs/promises";
import { answerRequests } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { type Mail, readMail } from "../../../lib/markup/mail.ts";
import type { MailAttachment } from "../../../lib/markup/mail-attachments.ts";
import { MarkupTooDeep } from "../../../lib/markup/tree.ts";

/** A mail on disk. */
export interface MailRequest {
  readonly path: string;
  /** The mail's bytes, if it is part of the file at `path`. Default: the whole file. */
  readonly content?: Uint8Array;
}

/** The mail without its attachments, then one part per attachment. */
export type MailPart =
  | (Pick<Mail, "markdown" | "alternative"> & { readonly kind: "mail" })
  | (Omit<MailAttachment, "bytes"> & { readonly kind: "attachment"; readonly bytes: Uint8Array });

/** Why a mail yields no text. */
export type MailFailure = "memory" | "damaged" | "unable" | "deep";

answerRequests<MailRequest, MailPart, MailFailure>(
  async ({ path, content }, give) => {
    const mail = content === undefined ? await readFile(path) : Buffer.from(content);
    const { markdown, alternative, attachments } = await readMail(mail);
    give({ kind: "mail", markdown, alternative });
    for (const { name, mediaType, bytes } of attachments)
      give({ kind: "attachment", name, mediaType, bytes });
  },
  (error) => {
    if (error instanceof MarkupTooDeep) return "deep";
    const kind = foreignKind(error);
    return kind === "machine" ? "unable" : kind;
  },
);
