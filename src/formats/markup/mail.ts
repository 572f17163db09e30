import PostalMime, { type Address, type Attachment } from "postal-mime";
import { oneLine } from "../../lib/one-line.ts";
import { htmlToMarkdown } from "./html-markdown.ts";
import { joined, type MailAttachment } from "./mail-attachments.ts";

/** The content of an e-mail. */
export interface Mail {
  /** Its subject. */
  readonly title: string | undefined;
  /** The sender as `Name <address>`; empty: none is named. */
  readonly from: string;
  /** When it was sent, in RFC 3339 where the header can be read; empty: it has none. */
  readonly date: string;
  /** Subject, people, date and body. */
  readonly markdown: string;
  readonly attachments: readonly MailAttachment[];
}

/** Recipients named at most. */
const NAMED_MAX = 100;
/** Parses an e-mail. Prefers an HTML body to a plain one, for its structure. */
export async function readMail(bytes: Buffer): Promise<Mail> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: 50 });
  const subject = oneLine(mail.subject ?? "");
  const from = addressText(mail.from === undefined ? [] : [mail.from]);
  const facts: readonly (readonly [string, string])[] = [
    ["From", from],
    ["To", addressText(mail.to ?? [])],
    ["Cc", addressText(mail.cc ?? [])],
    ["Date", mail.date ?? ""],
  ];
  const head = facts.filter(([, value]) => value !== "").map(([name, value]) => `- ${name}: ${value}`);
  const written = mail.html === undefined ? "" : htmlToMarkdown(mail.html, { whole: true }).markdown;
  const body = written === "" ? plainText(mail.text ?? "") : written;
  const attachments = mail.attachments.filter(({ related }) => related !== true).map(attachmentOf);
  const title = subject === "" ? undefined : subject;
  return {
    title,
    from,
    date: mail.date ?? "",
    markdown: joined([subject === "" ? "" : `# ${subject}`, head.join("\n"), body]),
    attachments,
  };
}

function addressText(addresses: readonly Address[]): string {
  return addresses
    .flatMap((each) => each.group ?? [each])
    .slice(0, NAMED_MAX)
    .map(({ name, address }) => oneLine(name === "" ? address : `${name} <${address}>`))
    .filter((text) => text !== "")
    .join(", ");
}

function attachmentOf({ filename, mimeType, content }: Attachment): MailAttachment {
  // An attached mail without a name is recognised by its type.
  const name = filename ?? (mimeType === "message/rfc822" ? "mail.eml" : "");
  const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(new Uint8Array(content));
  return { name, mediaType: mimeType, bytes };
}

function plainText(text: string): string {
  return text.replaceAll("\r\n", "\n").trim();
}
