import { KbsyncError } from "../../lib/failure.ts";
import { type AttachmentOutcome, LISTED_MAX, mailMarkdown } from "../../formats/markup/mail-attachments.ts";
import { trimLocated } from "../../formats/markup/located-text.ts";
import type { Requester } from "../ingest/extract/extract.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { readHead } from "../ingest/extract/text-file.ts";
import { textFormOf, type TextForm } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import { newFileToken } from "../uploads/file-address.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Most attachments read from a mail, including those of attached mails: text recognition may take half an hour for each. */
const COUNT_MAX = 20;
/** Most bytes of these attachments, which are on the disk twice meanwhile. */
const BYTES_MAX = 16 * 1024 * 1024;
const CHARS_MAX = 4_000_000;
/** Mails nested deeper are only named, not read. */
const DEPTH_MAX = 3;
/** Bytes of a file that show whether it is a mail. */
const HEAD_BYTES = 16 * 1024;

/** The remaining bounds of a mail. */
interface Budget {
  count: number;
  bytes: number;
  chars: number;
}

/** An attachment: its path on the disk, or the reason why it is not read. */
interface Unpacked {
  readonly name: string;
  readonly mediaType: string;
  readonly content: { readonly path: string } | { readonly reason: string };
}

/**
 * Reads the text of a file. The text of an e-mail includes its attachments, each read like a file of its own, with the same bounds
 * and for the same owner. Throws what the extraction of a file throws, and `mail_unreadable` for a mail.
 */
export async function fileText(
  kb: KnowledgeBase,
  path: string,
  mediaType: string,
  form: TextForm | undefined,
  requester: Requester,
): Promise<ReadText> {
  if (form !== "mail" || mediaType !== "text/plain" || !looksLikeMail(await readHead(path, HEAD_BYTES)))
    return await kb.ingest.textOf(path, mediaType, form, requester);
  const budget = { count: COUNT_MAX, bytes: BYTES_MAX, chars: CHARS_MAX };
  return await mailText(kb, path, requester, budget, 1);
}

/** Reads a mail. `depth` is 1 for a mail that is not attached to another. */
async function mailText(
  kb: KnowledgeBase,
  path: string,
  requester: Requester,
  budget: Budget,
  depth: number,
): Promise<ReadText> {
  const tokens: string[] = [];
  try {
    const { markdown, attachments } = await unpack(kb, path, requester, budget, tokens);
    let heldChars = markdown.length;
    const { whileWaiting } = requester;
    const inMail: Requester = {
      ...requester,
      onPart: undefined,
      whileWaiting: whileWaiting && ((work, chars, kind) => whileWaiting(work, heldChars + chars, kind)),
    };
    const outcomes: AttachmentOutcome[] = [];
    const warnings: string[] = [];
    for (const { name, mediaType, content } of attachments.slice(0, LISTED_MAX)) {
      const { warning, ...outcome } =
        "reason" in content
          ? { ...content, warning: undefined }
          : await attachmentText(kb, content.path, textFormOf(mediaType, name), inMail, budget, depth);
      outcomes.push(outcome);
      if ("text" in outcome) heldChars += outcome.text.length;
      if (warning !== undefined) warnings.push(`${name}: ${warning}`);
    }
    const text = mailMarkdown({ markdown, attachments }, outcomes);
    return warnings.length === 0 ? text : { ...text, warning: warnings.join(" ") };
  } finally {
    for (const token of tokens) await kb.files.discard(token);
  }
}

/**
 * Parses a mail and writes the attachments to read to the disk, under `tokens`. The first of them may wait for hours; meanwhile
 * no attachment is in memory.
 */
async function unpack(
  kb: KnowledgeBase,
  path: string,
  { tenant, lane, rank, signal, whileWaiting }: Requester,
  budget: Budget,
  tokens: string[],
): Promise<{ readonly markdown: string; readonly attachments: readonly Unpacked[] }> {
  const read = (): ReturnType<typeof kb.mails.read> =>
    kb.mails.read({ path }, { tenant, lane, rank, signal });
  const { markdown, attachments } = await (whileWaiting?.(read, 0, "read") ?? read());
  const unpacked: Unpacked[] = [];
  for (const [at, { name, mediaType, bytes }] of attachments.entries()) {
    if (at >= LISTED_MAX || budget.count <= 0 || bytes.length > budget.bytes) {
      unpacked.push({
        name,
        mediaType,
        content: { reason: `at most ${COUNT_MAX} attachments and 16 MB of a mail are read` },
      });
      continue;
    }
    budget.count -= 1;
    budget.bytes -= bytes.length;
    const token = newFileToken();
    tokens.push(token);
    const tooLarge = (): Error => new Error("unreachable: there is no limit");
    const received = await kb.files.receive(token, oneOf(bytes), Infinity, tooLarge);
    unpacked.push({ name, mediaType, content: { path: received.path } });
  }
  return { markdown, attachments: unpacked };
}

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Reads an attachment. Rejects with temporary failures: a mail is read completely or again later, never without a busy part. */
async function attachmentText(
  kb: KnowledgeBase,
  path: string,
  form: TextForm,
  requester: Requester,
  budget: Budget,
  depth: number,
): Promise<AttachmentOutcome & Pick<ReadText, "warning">> {
  try {
    const mediaType = await detectMediaType(path);
    const isMail = form === "mail" && mediaType === "text/plain";
    if (isMail && depth >= DEPTH_MAX) return { reason: "it lies in a mail in a mail in a mail" };
    const { warning, ...whole } = isMail
      ? await mailText(kb, path, requester, budget, depth + 1)
      : await kb.ingest.textOf(path, mediaType, form, requester);
    const read = trimLocated(whole);
    if (read.text === "") return { reason: warning ?? "there is no text in it" };
    if (read.text.length > budget.chars) return { reason: "it holds too much text for a part of a mail" };
    budget.chars -= read.text.length;
    return warning === undefined ? read : { ...read, warning };
  } catch (error) {
    if (!(error instanceof KbsyncError) || kb.isEnding()) throw error;
    const { code, retryAfterSeconds } = kb.explain(error);
    if (code === "internal" || retryAfterSeconds !== undefined) throw error;
    return { reason: error.message };
  }
}

/** Reports whether a file starts with header lines that include one that every mail has. */
function looksLikeMail(head: Uint8Array): boolean {
  const lines = new TextDecoder().decode(head).split(/\r?\n/);
  const end = lines.findIndex(
    (line, at) => !/^(?:[!-9;-~]+:|[ \t])/.test(line) && !(at === 0 && line.startsWith("From ")),
  );
  return lines
    .slice(0, end === -1 ? lines.length : end)
    .some((line) => /^(?:from|date|received|message-id|mime-version|subject):/i.test(line));
}
