import { pathBelow } from "../../lib/path-below.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { Tier } from "../../wire/primitives.ts";
import { openForReading } from "./offline.ts";

/** The location of a source's resources at the service. */
export interface SourceScope {
  readonly path: string;
  readonly ownerId: string;
  readonly tier: Tier;
  /** Undefined until the service has named it; until then there is nothing to search. */
  readonly collectionId: string | undefined;
}

/** Maps files to resources and back. */
export type ResourceLookup = NonNullable<ReturnType<typeof openResourceLookup>>;

/** Opens the ledger of a state folder for lookups; a daemon may be running. Undefined: there is no ledger yet. */
export function openResourceLookup(stateDir: string) {
  const open = openForReading(stateDir);
  if (open === undefined) return undefined;
  const { sources, files } = open.ledger;
  const rows = sources.active();
  /** The answer of the first source with a path that has one. */
  const inSource = <T>(absolutePath: string, find: (source: number, below: string) => T | undefined) => {
    for (const { id, path } of rows) {
      const below = pathBelow(path, absolutePath);
      const found = below === undefined || below === "" ? undefined : find(id, below);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const scopeOf = ({ path, ownerId, tier }: SourceRow): SourceScope => ({
    path,
    ownerId,
    tier,
    collectionId: sources.collectionId(tier),
  });
  return {
    sources: rows.map(scopeOf),
    /** Folders that are no longer synced, whose documents are still there. */
    formerSources: sources.removed().map(scopeOf),
    /** The file of a resource: its source's folder and the path below it. Undefined for a foreign resource. */
    fileOf: (docId: string): { readonly source: string; readonly path: string } | undefined => {
      const row = files.byDoc(docId);
      return row && { source: sources.folders().get(row.source) ?? "", path: row.path };
    },
    /** The resource of the file at an absolute path; undefined if the ledger has none. */
    docOf: (absolutePath: string): string | undefined =>
      inSource(absolutePath, (id, below) => files.living(id, below)?.docId ?? undefined),
    /** Whether the ledger has a row for an absolute path, in any state. */
    knows: (absolutePath: string): boolean =>
      inSource(absolutePath, (id, below) => files.at(id, below)[0]) !== undefined,
    close: (): void => open.close(),
  };
}
