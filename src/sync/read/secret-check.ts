import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { UserMetadata } from "../../wire/metadata.ts";
import { findSecret } from "../document/secrets.ts";
import type { Rules } from "../rules/rules.ts";
import type { SourceDocument } from "./outcome.ts";

/** Bytes that are checked of a file that is sent as it is, such as a PDF. */
const RAW_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Returns why a document must not be sent, for a person, without the secret; undefined: nothing speaks against it. Checks its text,
 * title, description and metadata. Of a file that is uploaded as it is, it checks the first bytes, in which compressed or encoded
 * text does not show.
 */
export async function secretReason(
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
  const rule = (found ?? inNames)?.rule;
  if (rule === undefined) return undefined;
  const where = found === undefined ? "its title, description or metadata" : `line ${found.line}`;
  const allowed = JSON.stringify([`/${path}`]);
  return `${where} looks like a secret (${rule}), so it is not sent; remove it, or allow the file in its source of the configuration: "allowSecrets": ${allowed}`;
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
