import { tagOf } from "../../lib/tag.ts";
import { splitMarker, withMarker, withoutMarker } from "../../wire/marker.ts";

/**
 * The marker at the end of each description that kbsync writes. It says which file a resource is, which version of it,
 * and which installation wrote it, so that a list of resources can be compared with a folder without guesses.
 *
 * Lower-case base32 survives services that fold case, escape HTML or trim. A service that cuts or drops descriptions
 * damages or removes it; `readMarker` distinguishes the two.
 */
export interface Marker {
  /** 8 characters, as `sourceTag` gives them. */
  readonly source: string;
  /** 12 characters, as `fileTag` gives them. */
  readonly file: string;
  /** 12 characters, as `bytesTag` gives them. */
  readonly bytes: string;
  /** 8 characters, as `writerTag` gives them. */
  readonly writer: string;
}

/** What the markers of one source have in common, as one installation writes them. */
export type Signature = Pick<Marker, "source" | "writer">;

/** What the end of a description shows. `damaged`: a marker of which a part is missing. */
export type MarkerReading =
  | { readonly kind: "none" }
  | { readonly kind: "damaged" }
  | { readonly kind: "whole"; readonly marker: Marker };

/** Most characters of a description before its marker. */
export const HUMAN_CHARS = 200;

/** A marker of which a part is missing, at the end of a text. No marker is longer than this. */
const DAMAGED = /\[kb:[a-z2-7.]*\]?$/i;
const MARKER_CHARS = 48;

/** Returns the tag of a source from its id in the configuration. */
export function sourceTag(id: string): string {
  return tagOf(8, id);
}

/** Returns the tag of a path below its source. Paths that differ only in how letters are composed have one tag. */
export function fileTag(path: string): string {
  return tagOf(12, path.normalize("NFC"));
}

/**
 * Returns the tag of a version of a file.
 * @param sha256 SHA-256 of the file's bytes, hex
 * @param formatVersion version of its format: the same bytes may be read as another text later
 */
export function bytesTag(sha256: string, formatVersion: number): string {
  return tagOf(12, sha256, String(formatVersion));
}

/**
 * Returns the tag of an installation. A copy of the state folder on another machine, or of the documents in another
 * folder, has another one.
 * @param instance random id that the state folder keeps beside the ledger
 * @param machine id of the machine
 * @param stateDir real path of the state folder
 * @param root real path of the source
 */
export function writerTag(instance: string, machine: string, stateDir: string, root: string): string {
  return tagOf(8, instance, machine, stateDir, root);
}

/** Returns a description that ends with the marker. Markers at the end of `human` are removed first. */
export function markedDescription(human: string, { source, file, bytes, writer }: Marker): string {
  const text = cutText(humanPart(human), HUMAN_CHARS);
  return withMarker(text, `[kb:${source}.${file}.${bytes}.${writer}]`);
}

/**
 * Returns the signature in the markers that a ledger sent for a source. As long as it sent none, no marker has it.
 * @param markerId the source's id in the markers
 */
export function sentSignature(sent: {
  readonly markerId: string | undefined;
  readonly writer: string | undefined;
}): Signature {
  return { source: sourceTag(sent.markerId ?? ""), writer: sent.writer ?? "" };
}

/** Reads the marker at the end of a description. One that is followed by other text is not ours. */
export function readMarker(description: string | null | undefined): MarkerReading {
  if (typeof description !== "string") return { kind: "none" };
  const { marker } = splitMarker(description);
  if (marker === "") return { kind: isDamaged(description) ? "damaged" : "none" };
  const [source = "", file = "", bytes = "", writer = ""] = marker.slice(4, -1).toLowerCase().split(".");
  return { kind: "whole", marker: { source, file, bytes, writer } };
}

/** Returns the part of a description that is meant for people, without a damaged marker too. */
function humanPart(description: string): string {
  let text = withoutMarker(description.trim());
  while (isDamaged(text)) text = withoutMarker(text.slice(0, text.lastIndexOf("[")).trimEnd());
  return text;
}

function isDamaged(description: string): boolean {
  return DAMAGED.test(description.trimEnd().slice(-MARKER_CHARS));
}

/** Cuts at a length in UTF-16 units, and never through a character. */
export function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = /[\uD800-\uDBFF]/.test(text.charAt(chars - 1)) ? chars - 1 : chars;
  return text.slice(0, end).trimEnd();
}
