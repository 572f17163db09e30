import { type ActionContext, reportCompared } from "../actions/context.ts";
import { hashUpload } from "../reconcile-service/uploads.ts";
import type { Observed } from "../ledger/files.ts";
import { hasSettings } from "../plan/decide.ts";
import type { LedgerFile, ListedResource } from "../plan/model.ts";
import type { SourceSync } from "../source/source.ts";
import { askPresence } from "../reconcile-service/presence.ts";
import type { Older } from "../reconcile-service/sweep.ts";

/**
 * Gives a file the resource that a former ledger made of it and that no list showed when the source was adopted. The
 * resource made since is deleted. As in an adoption, the older one may be somebody else's, and the younger one is this
 * ledger's own. The older one must be confirmed by its own answer first, because a list also shows deleted ones.
 * Returns false if none was taken.
 */
export async function takeOlder(
  context: ActionContext,
  source: SourceSync,
  { row, resources }: Older,
  signal: AbortSignal,
): Promise<boolean> {
  const before = context.ledger.files.get(row.id);
  if (before === undefined) return false;
  for (const resource of resources) {
    if (resource.isUnfinished === true) continue;
    if (row.kind === "file" && !(await isSameUpload(context, before, resource, signal))) continue;
    if ((await askPresence(context, resource, signal)) !== "there") continue;
    if (await exchange(context, source, before, resource)) return true;
  }
  return false;
}

async function isSameUpload(
  { remote }: ActionContext,
  { sizeBytes, hash }: LedgerFile,
  { url }: ListedResource,
  signal: AbortSignal,
): Promise<boolean> {
  if (url === undefined || !remote.hostsFile(url)) return false;
  return (await hashUpload(remote, url, sizeBytes, signal)) === hash;
}

async function exchange(
  context: ActionContext,
  source: SourceSync,
  before: LedgerFile,
  resource: ListedResource,
): Promise<boolean> {
  const { ledger } = context;
  const { docId, label, digest, updatedMs, settings } = resource;
  let left: { readonly id: number; readonly path: string; readonly docId: string } | undefined;
  await ledger.write(() => {
    // The file may have been sent since, or be in flight.
    const now = ledger.files.get(before.id);
    if (now?.docId === undefined || now.docId === null || now.docId !== before.docId) return;
    if (now.state !== "agreed" || now.hash !== before.hash || source.isBusy(now.path)) return;
    if (ledger.files.ownsDoc(docId) || ledger.intents.isDeleted(docId)) return;
    const observed = observedOf(now, resource);
    left = { id: ledger.intents.delete(source.id, now.path, now.docId), path: now.path, docId: now.docId };
    ledger.files.agree(now.id, docId, observed, {
      ...(label !== now.label && { label }),
      ...(now.shape.kind === "content" && digest !== now.digest && { digest }),
      ...(updatedMs !== undefined && { atMs: updatedMs }),
    });
    // With other chunk settings it is replaced by a new resource.
    if (!hasSettings(now.shape, settings)) ledger.files.setState(now.id, "unsure");
  });
  if (left === undefined) return false;
  const { path } = left;
  reportCompared(
    context,
    source,
    path,
    docId,
    `the file had it before; ${left.docId}, made since, is deleted`,
  );
  source.deleteLater(left);
  if (!hasSettings(before.shape, settings)) source.hint(path);
  return true;
}

function observedOf(row: LedgerFile, { url, settings }: ListedResource): Observed {
  const { path, sizeBytes, mtimeMs, ctimeMs, ino, shape, fileUrl } = row;
  const { rulesKey, hash, digest, title, label, extractorVersion } = row;
  return {
    entry: { path, sizeBytes, mtimeMs, ctimeMs, ino },
    rulesKey,
    hash,
    digest,
    title,
    label,
    extractorVersion,
    shape: { ...shape, settings: { ...shape.settings, ...settings } },
    fileUrl: url ?? fileUrl ?? undefined,
  };
}
