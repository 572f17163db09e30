import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { UserMetadata } from "../../wire/metadata.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { findSecret } from "../document/secrets.ts";
import type { Rules } from "../rules/rules.ts";
import type { SourceDocument } from "./outcome.ts";

/**
 * Returns the text inside a file that is sent as it is. Undefined: it takes no text from files of this type. Throws if it cannot read the
 * file within its bounds.
 */
export type FileTextReader = (path: string, mediaType: string) => Promise<string | undefined>;

/** Bytes that are checked of a file that is sent as it is, such as a PDF. */
const RAW_BYTES_MAX = 8 * 1024 * 1024;

/** Returns why a document must not be sent, for a person, without the secret; undefined: nothing speaks against it. */
export type SecretCheck = (
  absolutePath: string,
  document: SourceDocument,
  rules: Rules,
  metadata: UserMetadata | undefined,
) => Promise<string | undefined>;

/** Opens the check; without a reader it checks no text inside files that are sent as they are. */
export function openSecretCheck(readFileText: FileTextReader | undefined): SecretCheck {
  return (...document) => secretReason(readFileText, ...document);
}

/**
 * Returns why a document must not be sent, for a person, without the secret; undefined: nothing speaks against it. Checks its text,
 * title, description and metadata. Of a file that is uploaded as it is, it checks the first bytes, and the text that `readFileText`
 * finds in it. A file whose text cannot be read must not be sent: nobody knows what is in it.
 */
async function secretReason(
  readFileText: FileTextReader | undefined,
  absolutePath: string,
  document: SourceDocument,
  rules: Rules,
  metadata: UserMetadata | undefined,
): Promise<string | undefined> {
  const { path } = document.entry;
  if (rules.allowsSecrets(path)) return undefined;
  const { title, description } = document.recipe;
  const names = [title, description, JSON.stringify(metadata ?? {})].join("\n");
  const found = await findSecret(await textOf(absolutePath, document));
  const inNames = found === undefined ? await findSecret(names) : undefined;
  const allow = `allow the file in its source of the configuration: "allowSecrets": ${JSON.stringify([`/${path}`])}`;
  const refused = (where: string, rule: string): string =>
    `${where} looks like a secret (${rule}), so it is not sent; remove it, or ${allow}`;
  if (found !== undefined) return refused(`line ${found.line}`, found.rule);
  if (inNames !== undefined) return refused("its title, description or metadata", inNames.rule);
  if (document.kind !== "file" || readFileText === undefined) return undefined;
  try {
    const inside = await readFileText(document.entry.link?.real ?? absolutePath, document.mediaType);
    const hidden = inside === undefined ? undefined : await findSecret(inside);
    return hidden === undefined ? undefined : refused("the text inside it", hidden.rule);
  } catch (error) {
    if (!(error instanceof KbsyncError)) throw error;
    return `the text inside it cannot be checked for secrets (${error.message}), so it is not sent; ${allow}`;
  }
}

async function textOf(absolutePath: string, document: SourceDocument): Promise<string> {
  if (document.kind === "link") return document.url;
  if (document.kind === "file") return firstBytes(document.entry.link?.real ?? absolutePath);
  const { content } = document;
  // A thread has made JSON of it.
  return typeof content === "string" ? content : (JSON.parse(Buffer.from(content).toString()) as string);
}

async function firstBytes(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    const bytes = Buffer.alloc(Math.min(size, RAW_BYTES_MAX));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    // Every byte is a character, so that lines count as in the file.
    return bytes.toString("latin1", 0, bytesRead);
  } finally {
    await file.close();
  }
}
