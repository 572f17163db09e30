import { bytesTag, fileTag } from "./marker.ts";

/**
 * Raise it when the same bytes yield a different title, description, kind or text than before: every resource is then
 * compared again and updated where it differs. A faster way to the same result leaves it unchanged.
 */
export const EXTRACTOR_VERSION = 1;

/** The same for documents whose text is extracted and sent as Markdown. It affects no other file. */
export const CONVERTER_VERSION = 9;

/** A version of a file, as its marker names it: tags of path and bytes. */
export interface Version {
  readonly file: string;
  readonly bytes: string;
}

/** Former versions that are remembered for each resource. A stale list shows one of the last few. */
const SENT_MAX = 8;
/** Begins a hash of which only the tag is known. */
const TAG_PREFIX = "kb:";
const FORMAT_VERSION_MAX = Math.max(EXTRACTOR_VERSION, CONVERTER_VERSION);

/** Returns the path of a row whose file does not exist, for a person. No file of a source has it. */
export function absentName(title: string, docId: string): string {
  return `${title} [${docId}]`;
}

/** Returns the tag of a row's file. The history of a row whose file did not exist begins with that. */
export function fileOf({
  path,
  title,
  docId,
  sent,
}: {
  readonly path: string;
  readonly title: string;
  readonly docId: string;
  readonly sent: string;
}): string {
  return path === absentName(title, docId) ? (versionsOf(sent)[0]?.file ?? "") : fileTag(path);
}

/** Returns the hash of a row whose bytes only a marker shows. */
export function hashOfTag(tag: string): string {
  return TAG_PREFIX + tag;
}

/**
 * Returns the hashes under which the ledger may have a file's bytes: the SHA-256 itself, and its tag in each version of the
 * formats, because a row that was assigned from a list has the tag alone.
 */
export function hashesOf(sha256: string): readonly string[] {
  const versions = Array.from({ length: FORMAT_VERSION_MAX }, (_, index) => index + 1);
  return [sha256, ...versions.map((version) => hashOfTag(bytesTag(sha256, version)))];
}

/** Reports whether a hash of the ledger stands for these bytes, whatever was read from them. */
export function isHashOf(hash: string, sha256: string): boolean {
  return hash === sha256 || (hash.startsWith(TAG_PREFIX) && hashesOf(sha256).includes(hash));
}

/** Returns the tag of the bytes that the service acknowledged; undefined: unknown. */
export function acknowledgedTag({
  hash,
  extractorVersion,
}: {
  readonly hash: string;
  readonly extractorVersion: number;
}): string | undefined {
  if (hash === "") return undefined;
  return hash.startsWith(TAG_PREFIX) ? hash.slice(TAG_PREFIX.length) : bytesTag(hash, extractorVersion);
}

/** Reports whether a file that was read has the bytes of its row, in the version of its format. */
export function hasSameBytes(
  read: { readonly hash: string; readonly extractorVersion: number },
  row: { readonly hash: string },
): boolean {
  if (!row.hash.startsWith(TAG_PREFIX)) return read.hash === row.hash;
  return bytesTag(read.hash, read.extractorVersion) === row.hash.slice(TAG_PREFIX.length);
}

/** Adds versions to a history, oldest first. A history is text: pairs of tags, each `file.bytes`, separated by blanks. */
export function withSent(sent: string, versions: readonly Version[]): string {
  const pairs = sent === "" ? [] : sent.split(" ");
  for (const { file, bytes } of versions) {
    const pair = `${file}.${bytes}`;
    const at = pairs.indexOf(pair);
    if (at !== -1) pairs.splice(at, 1);
    pairs.push(pair);
  }
  return pairs.slice(-SENT_MAX).join(" ");
}

/** Returns the versions of a history. */
export function versionsOf(sent: string): readonly Version[] {
  if (sent === "") return [];
  return sent.split(" ").map((pair) => {
    const [file = "", bytes = ""] = pair.split(".");
    return { file, bytes };
  });
}

/** A row of the ledger, as far as its history requires. */
interface SentRow {
  readonly sent: string;
  readonly path: string;
  readonly hash: string;
  readonly extractorVersion: number;
}

/** Returns the history of a row with its current version, when that is about to become a former one. */
export function sentBefore(row: SentRow): string {
  const before = acknowledgedTag(row);
  return before === undefined ? row.sent : withSent(row.sent, [{ file: fileTag(row.path), bytes: before }]);
}

/** Returns the history of a row when the version of `read` is about to leave for its resource. */
export function sentWith(
  row: SentRow,
  read: { readonly path: string; readonly hash: string; readonly extractorVersion: number },
): string {
  const next = { file: fileTag(read.path), bytes: bytesTag(read.hash, read.extractorVersion) };
  return withSent(sentBefore(row), [next]);
}
