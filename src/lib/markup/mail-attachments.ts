import { oneLine } from "../one-line.ts";

/** A file attached to a mail. */
export interface MailAttachment {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** The text of an attachment, or the reason why it was not read. */
export type AttachmentOutcome = { readonly text: string } | { readonly reason: string };

/** Attachments listed at most. */
export const LISTED_MAX = 100;

/**
 * Appends the attachments to a mail: a list of their names, with the reason if one was not read, then the text of each
 * other one under a heading with its name. `outcomes` covers the first `LISTED_MAX`.
 */
export function mailMarkdown(
  {
    markdown,
    attachments,
  }: { readonly markdown: string; readonly attachments: readonly Omit<MailAttachment, "bytes">[] },
  outcomes: readonly AttachmentOutcome[],
): string {
  if (attachments.length === 0) return markdown;
  const list = ["Attachments:"];
  const texts: string[] = [];
  for (const [at, outcome] of outcomes.entries()) {
    const { name = "", mediaType = "" } = attachments[at] ?? {};
    const shown = oneLine(name) || "without a name";
    const reason = "reason" in outcome ? `, not read: ${outcome.reason}` : "";
    list.push(`- ${shown} (${mediaType})${reason}`);
    if ("text" in outcome) texts.push(`## Attachment: ${shown}\n\n${outcome.text}`);
  }
  if (attachments.length > LISTED_MAX) list.push(`- and ${attachments.length - LISTED_MAX} more, not read`);
  return joined([markdown, list.join("\n"), ...texts]);
}

/** Joins the non-empty parts of a text with blank lines. */
export function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
