import { KbsyncError } from "../../lib/failure.ts";
import { type AttachmentOutcome, LISTED_MAX, mailMarkdown } from "../../lib/markup/mail-attachments.ts";
import type { Behalf } from "../ingest/extract/extract.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { readHead } from "../ingest/extract/text-file.ts";
import { textFormOf, type TextForm } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import { newFileToken } from "../uploads/file-address.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Attachments of a mail that are read, those of the mails in it included: of each the recogniser may take half an hour. */
const COUNT_MAX = 20;
/** Their bytes, which lie on the disk a second time meanwhile. */
const BYTES_MAX = 16 * 1024 * 1024;
const CHARS_MAX = 4_000_000;
/** A mail in a mail in a mail: what is in that is named only. */
const DEPTH_MAX = 3;
/** As much of a file as tells whether it is a mail. */
const HEAD_BYTES = 16 * 1024;

/** What is left of the bounds of a mail. */
interface Budget {
  count: number;
  bytes: number;
  chars: number;
}

/** An attachment on the disk, or why it is not read. */
interface Unpacked {
  readonly name: string;
  readonly mediaType: string;
  readonly place: { readonly path: string } | { readonly reason: string };
}

/**
 * The text of a file; of an e-mail with that of its attachments, each read as a file of its own would be: with the same bounds and
 * on the same behalf. Throws what the extraction of a file throws, and of a mail `mail_unreadable`.
 */
export async function fileText(
  kb: KnowledgeBase,
  path: string,
  mediaType: string,
  form: TextForm | undefined,
  behalf: Behalf,
): Promise<ReadText> {
  if (form !== "mail" || mediaType !== "text/plain" || !looksLikeMail(await readHead(path, HEAD_BYTES)))
    return await kb.ingest.textOf(path, mediaType, form, behalf);
  const budget = { count: COUNT_MAX, bytes: BYTES_MAX, chars: CHARS_MAX };
  return await mailText(kb, path, behalf, budget, 1);
}

/** `depth`: 1 for a mail that lies in none. */
async function mailText(
  kb: KnowledgeBase,
  path: string,
  behalf: Behalf,
  budget: Budget,
  depth: number,
): Promise<ReadText> {
  const tokens: string[] = [];
  try {
    const { markdown, attachments } = await unpack(kb, path, behalf, budget, tokens);
    let heldChars = markdown.length;
    const { tenant, whileWaiting } = behalf;
    const inMail: Behalf = {
      tenant,
      whileWaiting: whileWaiting && ((work, chars) => whileWaiting(work, heldChars + chars)),
    };
    const outcomes: AttachmentOutcome[] = [];
    const warnings: string[] = [];
    for (const { name, mediaType, place } of attachments.slice(0, LISTED_MAX)) {
      const { warning, ...outcome } =
        "reason" in place
          ? { ...place, warning: undefined }
          : await attachmentText(kb, place.path, textFormOf(mediaType, name), inMail, budget, depth);
      outcomes.push(outcome);
      if ("text" in outcome) heldChars += outcome.text.length;
      if (warning !== undefined) warnings.push(`${name}: ${warning}`);
    }
    const text = mailMarkdown({ markdown, attachments }, outcomes);
    return warnings.length === 0 ? { text } : { text, warning: warnings.join(" ") };
  } finally {
    for (const token of tokens) await kb.files.discard(token);
  }
}

/**
 * Takes a mail apart and puts the attachments that are to be read on the disk, under `tokens`: the first of them may wait for
 * hours, and the bytes of none are in memory meanwhile.
 */
async function unpack(
  kb: KnowledgeBase,
  path: string,
  { tenant, whileWaiting }: Behalf,
  budget: Budget,
  tokens: string[],
): Promise<{ readonly markdown: string; readonly attachments: readonly Unpacked[] }> {
  const read = (): ReturnType<typeof kb.mails.read> => kb.mails.read(path, tenant);
  const { markdown, attachments } = await (whileWaiting?.(read, 0) ?? read());
  const unpacked: Unpacked[] = [];
  for (const [at, { name, mediaType, bytes }] of attachments.entries()) {
    if (at >= LISTED_MAX || budget.count <= 0 || bytes.length > budget.bytes) {
      unpacked.push({
        name,
        mediaType,
        place: { reason: `at most ${COUNT_MAX} attachments and 16 MB of a mail are read` },
      });
      continue;
    }
    budget.count -= 1;
    budget.bytes -= bytes.length;
    const token = newFileToken();
    tokens.push(token);
    const tooLarge = (): Error => new Error("bytes in memory are no longer than they are");
    const received = await kb.files.receive(token, oneOf(bytes), Infinity, tooLarge);
    unpacked.push({ name, mediaType, place: { path: received.path } });
  }
  return { markdown, attachments: unpacked };
}

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Rejects with what may go by itself: a mail is read whole or again, never without what was busy. */
async function attachmentText(
  kb: KnowledgeBase,
  path: string,
  form: TextForm,
  behalf: Behalf,
  budget: Budget,
  depth: number,
): Promise<AttachmentOutcome & Pick<ReadText, "warning">> {
  try {
    const mediaType = await detectMediaType(path);
    const isMail = form === "mail" && mediaType === "text/plain";
    if (isMail && depth >= DEPTH_MAX) return { reason: "it lies in a mail in a mail in a mail" };
    const { text: whole, warning } = isMail
      ? await mailText(kb, path, behalf, budget, depth + 1)
      : await kb.ingest.textOf(path, mediaType, form, behalf);
    const text = whole.trim();
    if (text === "") return { reason: warning ?? "there is no text in it" };
    if (text.length > budget.chars) return { reason: "it holds too much text for a part of a mail" };
    budget.chars -= text.length;
    return warning === undefined ? { text } : { text, warning };
  } catch (error) {
    if (!(error instanceof KbsyncError) || kb.isEnding()) throw error;
    const { code, retryAfterSeconds } = kb.explain(error);
    if (code === "internal" || retryAfterSeconds !== undefined) throw error;
    return { reason: error.message };
  }
}

/** Lines of a head with one that every mail has, whatever sent it. */
function looksLikeMail(head: Uint8Array): boolean {
  const lines = new TextDecoder().decode(head).split(/\r?\n/);
  const end = lines.findIndex(
    (line, at) => !/^(?:[!-9;-~]+:|[ \t])/.test(line) && !(at === 0 && line.startsWith("From ")),
  );
  return lines
    .slice(0, end === -1 ? lines.length : end)
    .some((line) => /^(?:from|date|received|message-id|mime-version|subject):/i.test(line));
}
