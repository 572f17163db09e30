import { lstatSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import { refusalBySize } from "../../formats/bounds.ts";
import { kindOfName } from "../../formats/kinds.ts";
import type { RelativePath, ScanEntry, Skip, Unreadable, FolderPath } from "../plan/model.ts";
import type { Rules } from "./rules/rules.ts";
import { linkedIno } from "./disk/linked-ino.ts";
import { excludedFacts, type Follower } from "./follow.ts";

/** The results of a walk. */
export interface Found {
  readonly entries: readonly ScanEntry[];
  readonly unreadable: readonly Unreadable[];
  readonly refused: readonly { readonly path: RelativePath; readonly reason: string }[];
  readonly skipped: readonly Skip[];
}

/** Collects the results of a walk. */
export type Findings = ReturnType<typeof openFindings>;

/** Opens the empty results of a walk. */
export function openFindings(rules: Rules, follower: Follower) {
  const entries: ScanEntry[] = [];
  const unreadable: Unreadable[] = [];
  const refused: { path: RelativePath; reason: string }[] = [];
  const skipped: Skip[] = [];

  /** Adds a path with an error, unless nothing is there. */
  const failed = (path: FolderPath, error: unknown): void => {
    if (!isAbsence(error)) unreadable.push({ path, code: codeOf(error) ?? "UNKNOWN" });
  };

  /** Adds a file by its rules and size. */
  const add = (path: RelativePath, name: string, stats: Stats): void => {
    const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
    const link = follower.linkOf(path);
    const ino = link === undefined ? integerColumn(stats.ino) : linkedIno(link.mark, stats.ino);
    const entry = { path, sizeBytes, mtimeMs, ctimeMs, ino, ...(link !== undefined && { link }) };
    const named = kindOfName(name);
    if (named.kind === "skipped") {
      skipped.push({ entry, reason: named.reason });
      return;
    }
    const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
    if (reason === undefined) entries.push(entry);
    else refused.push({ path, reason });
  };

  return {
    found: { entries, unreadable, refused, skipped },
    add,
    /** Adds the target of a link that the rules admit as a file or as a folder. Returns true for a folder to walk. */
    addLink: (
      path: RelativePath,
      name: string,
      stats: Stats,
      asFile: boolean,
      asFolder: boolean,
    ): boolean => {
      const target = follower.resolve(path, stats);
      switch (target.kind) {
        case "file":
          if (asFile) add(path, name, target.stats);
          return false;
        case "folder":
          return asFolder;
        case "unreadable":
          unreadable.push({ path, code: target.code });
          return false;
        case "none": {
          const entry = { path, sizeBytes: 0, ...excludedFacts(stats, target.reason) };
          skipped.push({ entry, reason: target.reason, absent: true });
          return false;
        }
      }
    },
    refuse: (path: RelativePath, reason: string): void => void refused.push({ path, reason }),
    unreadable: (facts: Unreadable): void => void unreadable.push(facts),
    failed,
    /** Returns the facts of a path; undefined if nothing is there or it is unreadable, which it adds. */
    stat: (path: RelativePath): Stats | undefined => {
      try {
        return lstatSync(follower.absolute(path), { throwIfNoEntry: false });
      } catch (error) {
        failed(path, error);
        return undefined;
      }
    },
  };
}

/** Whether the error means that nothing exists at the path, not that it is inaccessible. */
export function isAbsence(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}
