import type { CreateBody } from "../../wire/resource.ts";
import { codeOf } from "../../lib/failure.ts";
import type { LocatedText } from "../../formats/markup/located-text.ts";
import { textFormOf } from "../ingest/extract/text-form.ts";
import type { ReadText } from "../ingest/ingest.ts";
import type { StoredFile } from "../store/files.ts";
import type { Origin } from "../store/resources.ts";
import { lastSegment } from "../uploads/file-address.ts";
import { requesterOf, type KnowledgeBase, type OwnerKey } from "./knowledge-base.ts";
import { linkText, refuseLink } from "./link.ts";
import { fileText } from "./mail.ts";
import { invalidField, Refusal, shown } from "./refusal.ts";

/** The origin of a resource's text, and the text itself. */
export interface Source {
  readonly origin: Origin;
  readonly url: string | null;
  readonly content: string;
  /** Where the source file has the parts of `content`, if that is known. */
  readonly locations?: LocatedText["locations"];
  /** The own metadata of the file or link. */
  readonly fileMetadata?: ReadText["fileMetadata"];
  /** A message about parts of the document that the text does not contain. */
  readonly warning?: string | undefined;
}

/** Returns what a new text changes of a resource, without its chunks. */
export function textChange({ content, locations, fileMetadata }: Source) {
  return { content, locations, fileMetadata };
}

/** Returns the text of the request. Throws if it is too long, or if a location lies beyond it. */
export function contentSource(
  kb: KnowledgeBase,
  { content: given = "", locations }: Pick<CreateBody, "content" | "locations">,
): Source {
  // A lone surrogate has no UTF-8 form. The store would replace it, and offsets into the text would be wrong.
  const content = given.toWellFormed();
  refuseTooLong(kb, content, "content");
  refuseBeyond(content, locations);
  return { origin: "content", url: null, content, locations };
}

/** Throws for locations without the content that they refer to. */
export function refuseLocations({ content, locations }: Pick<CreateBody, "content" | "locations">): void {
  if (locations === undefined || content !== undefined) return;
  throw invalidField("locations", "expected content beside them, got none", "Send both, or neither.");
}

function refuseBeyond(content: string, locations: Source["locations"] = []): void {
  const at = locations.findIndex(({ start }) => start >= content.length);
  if (at === -1) return;
  const start = locations[at]?.start;
  throw invalidField(
    `locations[${at}].start`,
    `expected an offset below ${content.length}, the length of content, got ${start}`,
    "Offsets count UTF-16 units, as String.length in JavaScript does.",
  );
}

/**
 * Reads the text of an address: of an uploaded file, if this service issued the address to this account, else of the link. Throws with
 * field `url`.
 */
export async function urlSource(kb: KnowledgeBase, owner: OwnerKey, given: string): Promise<Source> {
  const url = parseUrl(given);
  const address = kb.addresses.classify(url);
  switch (address.kind) {
    case "elsewhere": {
      const { text: content, ...about } = await linkText(kb, owner, given);
      refuseTooLong(kb, content, "url");
      return { origin: "link", url: given, content, ...about };
    }
    case "inside":
      throw notIssued(given);
    case "token": {
      const file = await issuedFile(kb, owner.accountId, given, address.token);
      const fileUrl = kb.addresses.urlOf(file);
      const { text: content, ...about } = await readFileText(kb, owner, file);
      refuseTooLong(kb, content, "url");
      return { origin: "file", url: fileUrl, content, ...about };
    }
  }
}

/** Throws, with field `url`, for an address that is refused without a fetch. */
export async function refuseAddress(kb: KnowledgeBase, accountId: string, given: string): Promise<void> {
  const address = kb.addresses.classify(parseUrl(given));
  if (address.kind === "elsewhere") refuseLink(kb, given);
  if (address.kind === "inside") throw notIssued(given);
  if (address.kind === "token") await issuedFile(kb, accountId, given, address.token);
}

/** Returns the uploaded file at exactly this address. Throws `invalid_field` if it was not issued to this account. */
export async function issuedFile(
  kb: KnowledgeBase,
  accountId: string,
  given: string,
  token: string,
): Promise<StoredFile> {
  const url = parseUrl(given);
  const file = await kb.records.file(token);
  if (file === undefined || file.accountId !== accountId) throw notIssued(given);
  const exact = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  if (!exact || lastSegment(url) !== lastSegment(new URL(kb.addresses.urlOf(file)))) throw notIssued(given);
  return file;
}

async function readFileText(kb: KnowledgeBase, owner: OwnerKey, file: StoredFile): Promise<ReadText> {
  try {
    const form = textFormOf(file.declaredType ?? undefined, file.name);
    return await kb.files.use(file, (path) =>
      fileText(kb, path, file.mediaType, form, requesterOf(kb, owner)),
    );
  } catch (error) {
    // A child process that cannot open the file reports no code.
    const isGone = codeOf(error) === "ENOENT" || !(await kb.files.holds(file.token));
    if (!isGone) throw error;
    throw invalidField("url", "the uploaded file no longer exists", "Upload it again.");
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
    `${shown(given)} is below this service's file address but was not issued to this key's account`,
    "Send the file_url exactly as the upload returned it.",
  );
}

function refuseTooLong(kb: KnowledgeBase, content: string, field: string): void {
  const { contentBytes } = kb.limits;
  // A UTF-16 unit takes at most three bytes of UTF-8, so most texts need no count.
  if (content.length * 3 <= contentBytes || Buffer.byteLength(content) <= contentBytes) return;
  throw new Refusal(
    "text_too_large",
    `${field}: expected a text of at most ${contentBytes} bytes, got ${Buffer.byteLength(content)}`,
    { field, hint: "Split the text into several resources." },
  );
}
