import { hash } from "node:crypto";
import type { Approval } from "../../wire/daemon-status.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { RemovedSource, SourceRow } from "../ledger/sources/rows.ts";
import type { Sources } from "../ledger/sources/sources.ts";

/** Why the resources of a source that left the configuration are retained, for a person. */
const REMOVED_REASON = "removed from the configuration";

/**
 * The approvals that these sources need; none for a source without held deletes that is not halted. A source with a missing
 * folder is halted too, but nobody can approve that, because it is not known what will replace the folder.
 */
export function approvalsOf(
  sources: Pick<Sources, "heldMark">,
  rows: readonly (SourceRow | RemovedSource)[],
): Approval[] {
  return rows.flatMap((row) => {
    const { id, path, held, halted, holdReason, haltRoot, haltFiles, lost } = row;
    const approval = (files: number, reason: string, ...parts: readonly unknown[]): [Approval] => [
      { source: path, held: files, reason, token: tokenOf(id, files, reason, ...parts) },
    ];
    if ("resources" in row) return approval(row.resources, REMOVED_REASON);
    if (lost !== null) return approval(0, lost);
    if (halted !== null && haltRoot !== undefined) {
      const { dev, ino } = haltRoot;
      return approval(Math.max(held, haltFiles), halted, dev, ino, haltFiles, sources.heldMark(id));
    }
    // The reason describes the same deletes and may change while they do not.
    if (held === 0) return [];
    const reason = holdReason ?? "deletes held before";
    return [{ source: path, held, reason, token: tokenOf(id, sources.heldMark(id)) }];
  });
}

/** Length of a token: short enough to type. What is held changes in few ways before a person answers. */
const TOKEN_CHARS = 8;

function tokenOf(...parts: readonly unknown[]): string {
  return hash("sha256", parts.join(" ")).slice(0, TOKEN_CHARS);
}

/**
 * The rows that a token names; all rows without a token. Throws `approval_changed` if there are none: what is held differs
 * from what the person saw.
 */
function namedBy<R extends SourceRow>(
  sources: Pick<Sources, "heldMark">,
  rows: readonly R[],
  token: string | undefined,
): readonly R[] {
  if (token === undefined) return rows;
  const found = rows.filter((row) => approvalsOf(sources, [row]).some((each) => each.token === token));
  if (found.length > 0) return found;
  const now = approvalsOf(sources, rows).map(
    ({ source, held, reason }) => `${source}: ${held} deletes (${reason})`,
  );
  throw new KbsyncError(
    `nothing was approved: what is held is not what ${token} stands for; it is now ${now.join(", ") || "nothing"}`,
    {
      code: "approval_changed",
      subject: token,
      hint: "Files may have joined what is held, or come back: `kbsync approve` lists it as it is now, with a new token.",
    },
  );
}

/** `source_missing`: nobody can approve that a folder is missing. */
export function sourceMissing(folder: string, reason: string): KbsyncError {
  return new KbsyncError(`${folder}: ${reason}; nobody can approve that`, {
    code: "source_missing",
    subject: folder,
    hint: "Restore the folder. If it is gone for good, remove the source from the configuration, then approve the deletes of its documents.",
  });
}

/**
 * The sources that a person's approval concerns: the one of that folder, which may have left the configuration, or all
 * configured ones. Deleting the resources of a source that left requires its name or its token. Throws `source_unknown`,
 * `source_missing` for a missing folder, and as `namedBy` does.
 */
export function approvable(
  sources: Sources,
  folder: string | undefined,
  configured: () => readonly SourceRow[],
  token?: string,
): readonly (SourceRow | RemovedSource)[] {
  const removed = sources.removed();
  const named = removed.find(({ path }) => path === folder);
  if (named !== undefined) return namedBy(sources, [named], token);
  const rows = configured();
  const [row] = rows;
  if (
    folder !== undefined &&
    row !== undefined &&
    row.halted !== null &&
    approvalsOf(sources, rows).length === 0
  )
    throw sourceMissing(folder, row.halted);
  const held = rows.filter((each) => approvalsOf(sources, [each]).length > 0);
  // A token identifies a source that left as clearly as its folder does.
  return namedBy(sources, folder === undefined && token !== undefined ? [...held, ...removed] : held, token);
}
