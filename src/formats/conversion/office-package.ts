import { oneLine } from "../../lib/one-line.ts";
import { posix } from "node:path";
import { type MarkupElement, childrenNamed, firstBelow, parseMarkup, textOf } from "../markup/tree.ts";
import type { Archive } from "./archive.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Titles that programs generate. */
const MACHINE_TITLES =
  /^(?:powerpoint[- ]pr[eé]sentation|microsoft word - .*|slide \d+|folie \d+|untitled.*|document\d*|presentation\d*|book\d*|arbeitsblatt\d*)$/i;

/** The title in an office document's own properties; undefined if nobody gave it one. */
export async function packageTitle(archive: Archive): Promise<string | undefined> {
  const core = await parsePart(archive, "docProps/core.xml");
  const title = core === undefined ? undefined : firstBelow(core, "dc:title");
  const words = title === undefined ? "" : oneLine(textOf(title));
  return words === "" || MACHINE_TITLES.test(words) ? undefined : words;
}

/** Parses a part as XML; undefined if it does not exist. */
export async function parsePart(archive: Archive, name: string): Promise<MarkupElement | undefined> {
  const text = await archive.text(name);
  return text === undefined ? undefined : parseMarkup(text, "xml");
}

/** Parses a part that every document of the format has. */
export async function requirePart(archive: Archive, name: string): Promise<MarkupElement> {
  const part = await parsePart(archive, name);
  if (part === undefined) throw new ConversionRefusal(`it is damaged: its part ${name} is missing`);
  return part;
}

/**
 * The targets of a part's references, by id and by the last word of their types. Targets are names of parts in the
 * package.
 */
export interface Relations {
  readonly byId: ReadonlyMap<string, string>;
  readonly byType: ReadonlyMap<string, string>;
  readonly all: readonly { readonly type: string; readonly name: string }[];
}

/** Reads the references of a part (Open Packaging Conventions, relationships). */
export async function relationsOf(archive: Archive, part: string): Promise<Relations> {
  const folder = posix.dirname(part);
  const rels = await parsePart(archive, posix.join(folder, "_rels", `${posix.basename(part)}.rels`));
  const byId = new Map<string, string>();
  const byType = new Map<string, string>();
  const all: { type: string; name: string }[] = [];
  for (const root of rels === undefined ? [] : childrenNamed(rels, "Relationships")) {
    for (const { attributes } of childrenNamed(root, "Relationship")) {
      const { Id: id, Type: type = "", Target: target, TargetMode: mode } = attributes;
      if (id === undefined || target === undefined || mode === "External") continue;
      const name = target.startsWith("/") ? target.slice(1) : posix.join(folder, target);
      byId.set(id, name);
      const lastWord = type.slice(type.lastIndexOf("/") + 1);
      byType.set(lastWord, name);
      all.push({ type: lastWord, name });
    }
  }
  return { byId, byType, all };
}
