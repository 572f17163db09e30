import { hash } from "node:crypto";
import type { Approval } from "../../wire/daemon.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { RemovedSource, SourceRow, Sources } from "../ledger/sources.ts";

/** Why the resources of a source that left the configuration are kept, in words. */
export const REMOVED_REASON = "removed from the configuration";

/**
 * What there is to agree to in these sources: nothing where nothing is held and none stands still. Before a missing
 * folder a source stands still too, but to that nobody can agree: what will come in its place is not known.
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
    if ("kept" in row) return approval(row.kept, REMOVED_REASON);
    if (lost !== null) return approval(0, lost);
    if (halted !== null && haltRoot !== undefined) {
      const { dev, ino } = haltRoot;
      return approval(Math.max(held, haltFiles), halted, dev, ino, haltFiles, sources.heldMark(id));
    }
    // The reason is words about the same deletes, and may change while these do not.
    if (held === 0) return [];
    const reason = holdReason ?? "deletes held before";
    return [{ source: path, held, reason, token: tokenOf(id, sources.heldMark(id)) }];
  });
}

/** Digits of a token: few enough to be typed, and what is held changes in few ways before a person answers. */
const TOKEN_CHARS = 8;

function tokenOf(...parts: readonly unknown[]): string {
  return hash("sha256", parts.join(" ")).slice(0, TOKEN_CHARS);
}

/**
 * Of these rows those that a token names; all of them without one. Throws `approval_changed` where none is: what is held
 * is not what the person saw.
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

/**
 * The sources that a person's word is about: the one of that folder, which may have left the configuration, or all that
 * are in it. To the end of a source that left, only its name or its token agrees. Throws `source_unknown`, `source_missing`
 * for a folder that is not there, and as `namedBy` does.
 */
export function agreeable(
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
  ) {
    throw new KbsyncError(`${folder}: ${row.halted}; to that nobody can agree`, {
      code: "source_missing",
      subject: folder,
      hint: "Bring the folder back; or take the source out of the configuration, and agree then to the end of its resources.",
    });
  }
  const held = rows.filter((each) => approvalsOf(sources, [each]).length > 0);
  // A token names the source that left as well as its folder does.
  return namedBy(sources, folder === undefined && token !== undefined ? [...held, ...removed] : held, token);
}
