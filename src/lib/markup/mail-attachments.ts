import { oneLine } from "../one-line.ts";

/** A file that came with a mail. */
export interface MailAttachment {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** What came of an attachment: its text, or why it is not read. */
export type AttachmentOutcome = { readonly text: string } | { readonly reason: string };

/** Most attachments that are listed. */
export const LISTED_MAX = 100;

/**
 * A mail with its attachments, of which `outcomes` has the first `LISTED_MAX`: a list of their names, with the reason where one is
 * not read, and behind it the text of each of those that are, under a heading with its name.
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

/** Parts of a text, those that say something, with a blank line between them. */
export function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
