import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { LinkAnswer, Validators } from "../fetch/fetcher.ts";
import { readLink } from "../fetch/link.ts";
import type { Behalf } from "../ingest/extract/extract.ts";
import { detectMediaType } from "../ingest/extract/media-type.ts";
import { announcedEncoding, readHead } from "../ingest/extract/text-file.ts";
import { textFormOf, type TextForm } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import { known, looksLikePage } from "../ingest/page/page-text.ts";
import { linkAddress } from "../store/links.ts";
import type { Resource } from "../store/records.ts";
import { newFileToken } from "../uploads/file-address.ts";
import type { Received } from "../uploads/file-area.ts";
import { behalfOf, type KnowledgeBase, type Whose } from "./knowledge-base.ts";
import { fileText } from "./mail.ts";
import { Refusal } from "./refusal.ts";

/** As much of an answer as tells whether it is a page. */
const HEAD_BYTES = 1024;
const PDF_MARK = "%PDF-";

/** What was fetched, on the disk until its text is read. */
interface FetchedLink {
  readonly received: Received;
  readonly url: URL;
  readonly type: ContentType;
  readonly validators: Validators;
}

/**
 * The text behind a link. With `before`, the resource as it is, the server is asked whether anything changed since its
 * text was fetched from there; "unchanged" when it says no. Throws `link_refused` and `link_failed` with field `url`,
 * and what the extraction of a file throws.
 */
export async function linkText(
  kb: KnowledgeBase,
  whose: Whose,
  given: string,
  before?: Pick<Resource, "content">,
): Promise<ReadText | "unchanged"> {
  const { accountId } = whose;
  const behalf = behalfOf(kb, whose);
  const lastKnown = before && (await knownOf(kb, accountId, given, before.content));
  const fetched = await fetchLink(kb, behalf, given, lastKnown);
  if (fetched === "unchanged") return "unchanged";
  const { received, validators } = fetched;
  try {
    const read = await textOf(kb, behalf, fetched);
    const text = read.text.toWellFormed();
    if (validators.etag !== undefined || validators.lastModified !== undefined) {
      await kb.store.noteLinkFetch({
        accountId,
        url: linkAddress(given),
        textSha256: hash("sha256", text, "hex"),
        etag: validators.etag ?? null,
        lastModified: validators.lastModified ?? null,
      });
    }
    return { ...read, text };
  } catch (error) {
    throw asRefusal(error);
  } finally {
    await kb.files.discard(received.token);
  }
}

/** Throws `link_refused` for an address that is never fetched, whatever it leads to: it is not even kept. */
export function refuseLink(kb: Pick<KnowledgeBase, "fetcher">, given: string): void {
  try {
    kb.fetcher.refuse(readLink(given));
  } catch (error) {
    throw asRefusal(error);
  }
}

/** What the server said of exactly this text, if it was fetched from there. */
async function knownOf(
  kb: KnowledgeBase,
  accountId: string,
  given: string,
  content: string,
): Promise<Validators | undefined> {
  const noted = await kb.store.linkFetch(accountId, linkAddress(given));
  if (noted === undefined || noted.textSha256 !== hash("sha256", content, "hex")) return undefined;
  const { etag, lastModified } = noted;
  return { ...(etag === null ? {} : { etag }), ...(lastModified === null ? {} : { lastModified }) };
}

async function fetchLink(
  kb: KnowledgeBase,
  { tenant }: Behalf,
  given: string,
  validators: Validators | undefined,
): Promise<FetchedLink | "unchanged"> {
  try {
    const url = readLink(given);
    const fetch = (onBegin?: () => Promise<void>): Promise<FetchedLink | "unchanged"> =>
      kb.fetcher.fetch(url, validators, (answer) => receive(kb, answer), { tenant, onBegin });
    // Its servers may be slow: a queued document holds no slot meanwhile.
    return await (kb.whileFetching?.(fetch) ?? fetch());
  } catch (error) {
    throw asRefusal(error);
  }
}

/** Takes the bytes onto the disk, so that the connection may go before the text is read. */
async function receive(kb: KnowledgeBase, answer: LinkAnswer): Promise<FetchedLink> {
  const tooLarge = (): Error => failed("its answer is too large");
  // The fetcher counts, and in its own words.
  const received = await kb.files.receive(newFileToken(), answer.body, Infinity, tooLarge);
  const { url, validators } = answer;
  return { received, url, type: contentType(answer.contentType), validators };
}

async function textOf(
  kb: KnowledgeBase,
  behalf: Behalf,
  { received, url, type }: FetchedLink,
): Promise<ReadText> {
  const { path, sizeBytes } = received;
  if (sizeBytes === 0) throw failed("its answer is empty");
  const head = await readHead(path, HEAD_BYTES);
  // Before the server's word: many call whatever they have a page or text, and a file's bytes would pass for words.
  if (isBinary(type, head)) return kb.ingest.textOf(path, await detectMediaType(path), undefined, behalf);
  if (isPage(type, head)) {
    const page = { path, encoding: type.encoding, url: url.href };
    const read = (): Promise<string> => kb.pages.read(page, behalf.tenant);
    const text = await (behalf.whileWaiting?.(read, 0) ?? read());
    if (text.trim() === "") throw failed("the page has no text; what scripts would make of it is not seen");
    return { text };
  }
  const encoding = type.name.startsWith("text/") ? known(type.encoding) : undefined;
  // What says that it is text in another encoding is not found to be text by its bytes.
  if (encoding !== undefined && encoding !== "utf-8") {
    const text = new TextDecoder(encoding).decode(await readFile(path));
    if (text.includes("\0")) throw failed("its answer is not the text that it says it is");
    return { text };
  }
  return fileText(kb, path, await detectMediaType(path), formOf(type, url), behalf);
}

/** A server that says `text/plain` means it, whatever the address ends in. */
function formOf({ name }: ContentType, { pathname }: URL): TextForm {
  return name === "text/plain" ? "as-written" : textFormOf(name, pathname);
}

/** A media type as a server declares it, in lower case; empty where it says nothing that can be read. */
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

/** A PDF by its mark, which may be all letters; every other kind of file has a NUL early, and no text but UTF-16 has one. */
function isBinary({ encoding }: ContentType, head: Uint8Array): boolean {
  if (new TextDecoder("latin1").decode(head.subarray(0, PDF_MARK.length)) === PDF_MARK) return true;
  const isWide = announcedEncoding(head) !== "utf-8" || known(encoding)?.startsWith("utf-16") === true;
  return !isWide && head.includes(0) && !looksLikePage(head);
}

/** The server's word counts where it has one, and the bytes are text at all. */
function isPage({ name }: ContentType, head: Uint8Array): boolean {
  if (name === "text/html" || name === "application/xhtml+xml") return true;
  const says =
    name !== "" && name !== "application/octet-stream" && name !== "application/xml" && name !== "text/xml";
  return !says && looksLikePage(head);
}

/** Failures of the fetch, and of a body that is nothing we take, are one kind: the link does not give a text. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof KbsyncError)) return error;
  switch (error.code) {
    case "link_refused":
      return new Refusal("link_refused", `url: ${error.message}`, {
        field: "url",
        cause: error,
        hint: error.hint ?? "Whoever runs the service can open other addresses with kb.fetch.allow.",
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
