import { readFile } from "node:fs/promises";
import { answerRequests } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { type Mail, readMail } from "../../../formats/markup/mail.ts";
import type { MailAttachment } from "../../../formats/markup/mail-attachments.ts";
import { MarkupTooDeep } from "../../../formats/markup/tree.ts";

/** A mail on disk. */
export interface MailRequest {
  readonly path: string;
}

/** The mail without its attachments, then one part per attachment. */
export type MailPart =
  | (Pick<Mail, "markdown"> & { readonly kind: "mail" })
  | (Omit<MailAttachment, "bytes"> & { readonly kind: "attachment"; readonly bytes: Uint8Array });

/** Why a mail yields no text. */
export type MailFailure = "memory" | "damaged" | "unable" | "deep";

answerRequests<MailRequest, MailPart, MailFailure>(
  async ({ path }, give) => {
    const { markdown, attachments } = await readMail(await readFile(path));
    give({ kind: "mail", markdown });
    for (const { name, mediaType, bytes } of attachments)
      give({ kind: "attachment", name, mediaType, bytes });
  },
  (error) => {
    if (error instanceof MarkupTooDeep) return "deep";
    const kind = foreignKind(error);
    return kind === "machine" ? "unable" : kind;
  },
);
