import { codeOf } from "../../lib/failure.ts";
import { textFormOf } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import type { Origin, Resource, StoredFile } from "../store/records.ts";
import { lastSegment } from "../uploads/file-address.ts";
import { behalfOf, type KnowledgeBase, type Whose } from "./knowledge-base.ts";
import { linkText, refuseLink } from "./link.ts";
import { fileText } from "./mail.ts";
import { invalidField, Refusal, shown } from "./refusal.ts";

/** Where a resource's text comes from, with the text itself. */
export interface Source {
  readonly origin: Origin;
  readonly url: string | null;
  readonly content: string;
  /** What of the document the text does not hold, in words. */
  readonly warning?: string | undefined;
}

/** The text that was sent. Throws when it is too long. */
export function contentSource(kb: KnowledgeBase, given: string): Source {
  // A lone surrogate has no UTF-8 form: a store would change it behind our back, and offsets must hold.
  const content = given.toWellFormed();
  refuseTooLong(kb, content, "content");
  return { origin: "content", url: null, content };
}

/** What an address gives: see `changedSource`, without anything to compare with. */
export async function urlSource(kb: KnowledgeBase, whose: Whose, given: string): Promise<Source> {
  const source = await changedSource(kb, whose, given, undefined);
  if (source === undefined) throw new Error("a link said that it is unchanged, but nothing was there before");
  return source;
}

/**
 * What an address gives: the text of an uploaded file, for one that this service issued to this account, else the text
 * behind the link. With `before`, the link resource as it is: undefined where the server says that its text is still
 * the same. Throws with field `url`.
 */
export async function changedSource(
  kb: KnowledgeBase,
  whose: Whose,
  given: string,
  before: Resource | undefined,
): Promise<Source | undefined> {
  const url = parseUrl(given);
  const address = kb.addresses.classify(url);
  switch (address.kind) {
    case "elsewhere": {
      const found = await linkText(kb, whose, given, before);
      if (found === "unchanged") return undefined;
      const content = found.text;
      refuseTooLong(kb, content, "url");
      return { origin: "link", url: given, content, warning: found.warning };
    }
    case "inside":
      throw notIssued(given);
    case "token": {
      const file = await issuedFile(kb, whose.accountId, given, address.token);
      const fileUrl = kb.addresses.urlOf(file);
      const { text: content, warning } = await readFileText(kb, whose, file);
      refuseTooLong(kb, content, "url");
      return { origin: "file", url: fileUrl, content, warning };
    }
  }
}

/** Throws, with field `url`, for an address that can be told to be refused without asking anybody for it. */
export async function refuseAddress(kb: KnowledgeBase, accountId: string, given: string): Promise<void> {
  const address = kb.addresses.classify(parseUrl(given));
  if (address.kind === "elsewhere") refuseLink(kb, given);
  if (address.kind === "inside") throw notIssued(given);
  if (address.kind === "token") await issuedFile(kb, accountId, given, address.token);
}

/** The uploaded file at exactly this address. Throws `invalid_field` where it was not issued to this account. */
export async function issuedFile(
  kb: KnowledgeBase,
  accountId: string,
  given: string,
  token: string,
): Promise<StoredFile> {
  const url = parseUrl(given);
  const file = await kb.store.file(token);
  if (file === undefined || file.accountId !== accountId) throw notIssued(given);
  const exact = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  if (!exact || lastSegment(url) !== lastSegment(new URL(kb.addresses.urlOf(file)))) throw notIssued(given);
  return file;
}

async function readFileText(kb: KnowledgeBase, whose: Whose, file: StoredFile): Promise<ReadText> {
  try {
    return await fileText(
      kb,
      kb.files.path(file.token),
      file.mediaType,
      textFormOf(file.declaredType ?? undefined, file.name),
      behalfOf(kb, whose),
    );
  } catch (error) {
    // A child process that could not open it has no code to tell.
    const isGone = codeOf(error) === "ENOENT" || !(await kb.files.holds(file.token));
    if (!isGone) throw error;
    throw invalidField("url", "the uploaded file is no longer there", "Upload it again.");
  }
}

function parseUrl(given: string): URL {
  const url = URL.parse(given);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidField("url", `expected an http or https address, got ${shown(given)}`);
  }
  return url;
}

function notIssued(given: string): Refusal {
  return invalidField(
    "url",
    `${shown(given)} lies under this service's file address but was not issued to this key's account`,
    "Send the file_url exactly as the upload answered it.",
  );
}

function refuseTooLong(kb: KnowledgeBase, content: string, field: string): void {
  const { contentBytes } = kb.limits;
  // A UTF-16 unit is at most three bytes of UTF-8: most texts need no counting.
  if (content.length * 3 <= contentBytes || Buffer.byteLength(content) <= contentBytes) return;
  throw new Refusal(
    "text_too_large",
    `${field}: expected a text of at most ${contentBytes} bytes, got ${Buffer.byteLength(content)}`,
    { field, hint: "Split the text into several resources." },
  );
}
