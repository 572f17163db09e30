import { readFile } from "node:fs/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { LinkAnswer } from "../fetch/fetcher.ts";
import { readLink } from "../fetch/link.ts";
import type { Requester } from "../ingest/extract/extract.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { announcedEncoding, readHead } from "../ingest/extract/text-file.ts";
import { textFormOf, type TextForm } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import { known, looksLikePage } from "../ingest/page/page-text.ts";
import { newFileToken } from "../uploads/file-address.ts";
import type { Received } from "../uploads/file-store.ts";
import { requesterOf, type KnowledgeBase, type OwnerKey } from "./knowledge-base.ts";
import { fileText } from "./mail.ts";
import { Refusal } from "./refusal.ts";

/** Bytes of an answer that show whether it is a page. */
const HEAD_BYTES = 1024;
const PDF_MARK = "%PDF-";

/** A fetched link, on the disk until its text is read. */
interface FetchedLink {
  readonly received: Received;
  readonly url: URL;
  readonly type: ContentType;
}

/**
 * Fetches the text of a link. Throws `link_refused` and `link_failed` with field `url`, and what the extraction of a file throws.
 */
export async function linkText(kb: KnowledgeBase, owner: OwnerKey, given: string): Promise<ReadText> {
  const requester = requesterOf(kb, owner);
  const fetched = await fetchLink(kb, requester, given);
  try {
    const read = await textOf(kb, requester, fetched);
    return { ...read, text: read.text.toWellFormed() };
  } catch (error) {
    throw asRefusal(error);
  } finally {
    await kb.files.discard(fetched.received.token);
  }
}

/** Throws `link_refused` for an address that is never fetched. Such an address is not even stored. */
export function refuseLink(kb: Pick<KnowledgeBase, "fetcher">, given: string): void {
  try {
    kb.fetcher.refuse(readLink(given));
  } catch (error) {
    throw asRefusal(error);
  }
}

async function fetchLink(
  kb: KnowledgeBase,
  { tenant, signal }: Requester,
  given: string,
): Promise<FetchedLink> {
  try {
    const url = readLink(given);
    const fetch = (onBegin?: () => Promise<void>): Promise<FetchedLink> =>
      kb.fetcher.fetch(url, (answer) => receive(kb, answer), { tenant, signal, onBegin });
    // Servers may be slow, so a queued document holds no slot during the fetch.
    return await (kb.whileFetching?.(fetch) ?? fetch());
  } catch (error) {
    throw asRefusal(error);
  }
}

/** Writes the answer to the disk, so that the connection can close before the text is read. */
async function receive(kb: KnowledgeBase, answer: LinkAnswer): Promise<FetchedLink> {
  const tooLarge = (): Error => failed("its answer is too large");
  // The fetcher enforces the limit, with a message of its own.
  const received = await kb.files.receive(newFileToken(), answer.body, Infinity, tooLarge);
  return { received, url: answer.url, type: contentType(answer.contentType) };
}

async function textOf(
  kb: KnowledgeBase,
  requester: Requester,
  { received, url, type }: FetchedLink,
): Promise<ReadText> {
  const { path, sizeBytes } = received;
  if (sizeBytes === 0) throw failed("its answer is empty");
  const head = await readHead(path, HEAD_BYTES);
  // Checked before the declared type: many servers declare every file as a page or text, and its bytes would be read as words.
  if (isBinary(type, head)) return kb.ingest.textOf(path, await detectMediaType(path), undefined, requester);
  if (isPage(type, head)) {
    const page = { path, encoding: type.encoding, url: url.href };
    const read = (): Promise<string> => kb.pages.read(page, requester);
    const text = await (requester.whileWaiting?.(read, 0, "read") ?? read());
    if (text.trim() === "") throw failed("the page has no text; scripts are not run");
    return { text };
  }
  const encoding = type.name.startsWith("text/") ? known(type.encoding) : undefined;
  // The bytes of a text in another encoding would not be recognised as text.
  if (encoding !== undefined && encoding !== "utf-8") {
    const text = new TextDecoder(encoding).decode(await readFile(path));
    if (text.includes("\0")) throw failed("its answer is not the text that its content type declares");
    return { text };
  }
  return fileText(kb, path, await detectMediaType(path), formOf(type, url), requester);
}

/** Returns the form of a text. `text/plain` takes precedence over the extension of the address. */
function formOf({ name }: ContentType, { pathname }: URL): TextForm {
  return name === "text/plain" ? "as-written" : textFormOf(name, pathname);
}

/** A media type as the server declares it, in lower case; empty if it is missing or unreadable. */
interface ContentType {
  readonly name: string;
  readonly encoding: string | undefined;
}

function contentType(header: string | undefined): ContentType {
  const [name = "", ...parameters] = (header ?? "").split(";");
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter)?.[1])
    .find((value) => value !== undefined);
  return { name: name.trim().toLowerCase(), encoding: charset };
}

/** Recognises a PDF by its signature, since it may be all letters. Other files have an early NUL, which no text but UTF-16 has. */
function isBinary({ encoding }: ContentType, head: Uint8Array): boolean {
  if (new TextDecoder("latin1").decode(head.subarray(0, PDF_MARK.length)) === PDF_MARK) return true;
  const isWide = announcedEncoding(head) !== "utf-8" || known(encoding)?.startsWith("utf-16") === true;
  return !isWide && head.includes(0) && !looksLikePage(head);
}

/** Reports whether a text is a page. The declared type decides if there is one. */
function isPage({ name }: ContentType, head: Uint8Array): boolean {
  if (name === "text/html" || name === "application/xhtml+xml") return true;
  const isDeclared =
    name !== "" && name !== "application/octet-stream" && name !== "application/xml" && name !== "text/xml";
  return !isDeclared && looksLikePage(head);
}

/** Maps failures of the fetch, and of unsupported content, to one kind: the link yields no text. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof KbsyncError)) return error;
  switch (error.code) {
    case "link_refused":
      return new Refusal("link_refused", `url: ${error.message}`, {
        field: "url",
        cause: error,
        hint: error.hint ?? "The operator of the service can allow other addresses with kb.allowHosts.",
      });
    case "link_failed":
    case "page_unreadable":
    case "mail_unreadable":
    case "page_without_text":
    case "unsupported_media_type":
    case "empty_file":
      return error instanceof Refusal ? error : failed(error.message, error);
    default:
      return error;
  }
}

function failed(why: string, cause?: unknown): Refusal {
  return new Refusal("link_failed", `The link could not be fetched: ${why}.`, {
    field: "url",
    ...(cause === undefined ? {} : { cause }),
  });
}
