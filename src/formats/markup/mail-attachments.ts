import { oneLine } from "../../lib/one-line.ts";
import {
  joinLocated,
  locatedAt,
  type LocatedText,
  type LocationStart,
  locationName,
} from "./located-text.ts";

/** A file attached to a mail. */
export interface MailAttachment {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** The text of an attachment, or the reason why it was not read. */
export type AttachmentOutcome = LocatedText | { readonly reason: string };

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
): LocatedText {
  const body = locatedAt(markdown, MESSAGE);
  if (attachments.length === 0) return body;
  const list = ["Attachments:"];
  const texts: LocatedText[] = [];
  for (const [at, outcome] of outcomes.entries()) {
    const { name = "", mediaType = "" } = attachments[at] ?? {};
    const shown = oneLine(name) || "without a name";
    const reason = "reason" in outcome ? `, not read: ${outcome.reason}` : "";
    list.push(`- ${shown} (${mediaType})${reason}`);
    if ("text" in outcome) texts.push(underHeading(shown, outcome));
  }
  if (attachments.length > LISTED_MAX) list.push(`- and ${attachments.length - LISTED_MAX} more, not read`);
  return joinLocated([body, locatedAt(list.join("\n"), MESSAGE), ...texts]);
}

/** The text of the e-mail itself. */
const MESSAGE = { part: "message" };

function underHeading(name: string, { text, locations }: LocatedText): LocatedText {
  const part = locationName(name);
  const partOf = (inner: string | undefined): string =>
    inner === undefined || inner === MESSAGE.part ? part : locationName(`${part}/${inner}`);
  const own: readonly LocationStart[] =
    locations?.map((each) => ({ ...each, part: partOf(each.part) })) ?? [];
  const located = { text, locations: own[0]?.start === 0 ? own : [{ start: 0, part }, ...own] };
  return joinLocated([locatedAt(`## Attachment: ${name}`, { part }), located]);
}

/** Joins the non-empty parts of a text with blank lines. */
export function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
