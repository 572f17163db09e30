import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { UserMetadata } from "../../wire/metadata.ts";
import { END_CODES } from "../../lib/capped/end-failure.ts";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { codeWords } from "../../lib/system-error.ts";
import { findSecret } from "../document/secrets.ts";
import type { Rules } from "../rules/rules.ts";
import type { SourceDocument } from "./outcome.ts";

/** The text inside a file that is sent as it is. */
export interface InsideText {
  /** What a service takes as its text: the pages of a PDF, a mail with its attachments. */
  readonly text: string;
  /** What it may read beside that: properties, form fields, annotations and attachments of PDFs. */
  readonly beyond: string;
}

/** Reads the text inside files that are sent as they are. */
export interface FileTexts {
  /**
   * Undefined: it takes no text from files of this type. Waits for its turn, however many files wait. Throws the signal's reason, and a
   * KbsyncError if it cannot read the file within its bounds; a retryable one if it may be able to later.
   */
  read(path: string, mediaType: string, signal: AbortSignal): Promise<InsideText | undefined>;
}

/** Why a document must not be sent. */
export interface Objection {
  /** `secret`: it seems to have one. `not_checked`: its text cannot be read, so nobody knows. */
  readonly code: "secret" | "not_checked";
  /** For a person, without the secret. */
  readonly message: string;
  /** Checks, with this one, after which the objection is final. 1: at once. Infinity: never, as it may pass at any time. */
  readonly checksMax: number;
}

/** Bytes that are checked of a file that is sent as it is, such as a PDF. */
const RAW_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Checks of a file that takes too much memory or crashes its reader. Other programs may be why, for some minutes; a file that
 * is why itself must not take a process for ever.
 */
const COSTLY_CHECKS_MAX = 5;

type ReadInside = (path: string, mediaType: string) => Promise<InsideText | undefined>;

/** Returns why a document must not be sent; undefined: nothing speaks against it. `readInside` replaces the check's own. */
export type SecretCheck = (
  absolutePath: string,
  document: SourceDocument,
  rules: Rules,
  metadata: UserMetadata | undefined,
  readInside?: ReadInside,
) => Promise<Objection | undefined>;

/** Opens the check. Without `readInside` it checks no text inside files that are sent as they are. */
export function openSecretCheck(readInside?: ReadInside): SecretCheck {
  return (path, document, rules, metadata, instead = readInside) =>
    objectionTo(instead, path, document, rules, metadata);
}

/** The check of a daemon, which can be stopped. */
export interface StoppableCheck {
  /** Undefined: files with secrets are sent. */
  readonly check: SecretCheck | undefined;
  /** Makes checks of text inside files throw, now and later. Nothing depends on them: the next start repeats them. */
  stop(): void;
}

/** Opens the check of a daemon, if it is on. Calls `onChecked` after each document, which may take a minute. */
export function openStoppableCheck(
  isOn: boolean,
  texts: FileTexts | undefined,
  onChecked: () => void,
): StoppableCheck {
  if (!isOn) return { check: undefined, stop: () => undefined };
  const stopping = new AbortController();
  const check = openSecretCheck(texts && ((path, type) => texts.read(path, type, stopping.signal)));
  return {
    check: async (...document) => {
      const objection = await check(...document);
      onChecked();
      return objection;
    },
    stop: () => stopping.abort(new Error("the daemon is stopping")),
  };
}

/**
 * Checks the text of a document, its title, description and metadata. Of a file that is uploaded as it is, it checks the first bytes, and
 * the text that `readInside` finds in it. A file whose text cannot be read must not be sent: nobody knows what is in it.
 */
async function objectionTo(
  readInside: ReadInside | undefined,
  absolutePath: string,
  document: SourceDocument,
  rules: Rules,
  metadata: UserMetadata | undefined,
): Promise<Objection | undefined> {
  const { path } = document.entry;
  if (rules.allowsSecrets(path)) return undefined;
  const { title, description } = document.recipe;
  const names = [title, description, JSON.stringify(metadata ?? {})].join("\n");
  const text = await textOf(absolutePath, document).catch(unreadable);
  if (typeof text !== "string") return text;
  const found = await findSecret(text);
  const inNames = found === undefined ? await findSecret(names) : undefined;
  const allow = `allow the file in its source of the configuration: "allowSecrets": ${JSON.stringify([`/${path}`])}`;
  const refused = (where: string, rule: string): Objection => ({
    code: "secret",
    message: `${where} looks like a secret (${rule}), so it is not sent; remove it, or ${allow}`,
    checksMax: 1,
  });
  if (found !== undefined) return refused(`line ${found.line}`, found.rule);
  if (inNames !== undefined) return refused("its title, description or metadata", inNames.rule);
  if (document.kind !== "file" || readInside === undefined) return undefined;
  try {
    const inside = await readInside(document.entry.link?.real ?? absolutePath, document.mediaType);
    if (inside === undefined) return undefined;
    const inText = await findSecret(inside.text);
    if (inText !== undefined) return refused("the text inside it", inText.rule);
    const beyond = await findSecret(inside.beyond);
    return beyond && refused("a property, form field, note or attachment in it", beyond.rule);
  } catch (error) {
    if (!(error instanceof KbsyncError)) throw error;
    const message = `the text inside it cannot be checked for secrets (${error.message}), so it is not sent; ${allow}`;
    return { code: "not_checked", message, checksMax: checksMaxOf(error) };
  }
}

function checksMaxOf({ code, retryable }: KbsyncError): number {
  if (retryable) return Infinity;
  return code === END_CODES.memory || code === END_CODES.fall ? COSTLY_CHECKS_MAX : 1;
}

/** A file that was read a moment ago, and may be gone or replaced by now: the next check of its path finds out. */
function unreadable(error: unknown): Objection {
  const code = codeOf(error);
  if (code === undefined) throw error;
  const message = `it cannot be read again to be checked for secrets (${codeWords(code)}), so it is not sent`;
  return { code: "not_checked", message, checksMax: Infinity };
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
