import { resolve } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { ResourceLookup, SourceScope } from "../../sync/operate/resource-lookup.ts";
import { searchScopes } from "../../sync/operate/search.ts";
import type { SearchQuery } from "../../sync/send/remote/remote.ts";
import type { Tier } from "../../wire/primitives.ts";
import { locatePath } from "../state/typed-path.ts";

/** Options that narrow a search. */
export interface ScopeOptions {
  readonly doc?: string;
  readonly source?: string;
  readonly tier?: Tier;
}

/** The range of a search. */
export interface SearchScope {
  readonly targets: readonly SearchQuery["where"][];
  /** Whether a resource belongs to the searched source; undefined if all resources of the targets do. */
  readonly isOfSource: ((resourceId: string) => boolean) | undefined;
}

/** Narrows the sources by the options. Throws `usage` if none is left. */
export function scopeOf(
  lookup: ResourceLookup,
  { doc, source, tier }: ScopeOptions,
  cwd: string,
): SearchScope {
  if (doc !== undefined) return { targets: [documentOf(lookup, doc, cwd)], isOfSource: undefined };
  const folder = source === undefined ? undefined : resolve(cwd, source);
  const isMeant = (each: SourceScope): boolean =>
    (folder === undefined || each.path === folder) && (tier === undefined || each.tier === tier);
  const all = [...lookup.sources, ...lookup.formerSources];
  const sources = all.filter(isMeant);
  if (sources.length === 0) {
    const known = all.map((each) => `${shellWord(each.path)} (${each.tier})`).join(", ");
    throw new KbsyncError(
      folder === undefined ? `no folder has the tier ${tier}` : `${folder} is not a synced folder`,
      { code: "usage", subject: folder ?? tier ?? "", hint: `Synced folders: ${known}.` },
    );
  }
  const targets = searchScopes(sources);
  const isShared = searchScopes(all.filter((each) => !isMeant(each))).some((other) =>
    targets.some((mine) => mine.collectionId === other.collectionId && mine.ownerId === other.ownerId),
  );
  const paths = new Set(sources.map(({ path }) => path));
  return {
    targets,
    isOfSource: isShared ? (resourceId) => paths.has(lookup.fileOf(resourceId)?.source ?? "") : undefined,
  };
}

/** Throws `usage` for a file that has no resource. */
function documentOf(lookup: ResourceLookup, doc: string, cwd: string): SearchQuery["where"] {
  const folders = lookup.sources.map(({ path }) => path);
  const isKnown = (path: string): boolean => lookup.docOf(path) !== undefined;
  const docId = lookup.docOf(locatePath(doc, { cwd, folders, isKnown }));
  if (docId !== undefined) return { docId };
  throw new KbsyncError(`${doc} is not in the knowledge base`, {
    code: "usage",
    subject: doc,
    hint: "`kbsync status` shows which folders are synced and which files failed.",
  });
}
