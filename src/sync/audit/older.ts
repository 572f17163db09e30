import { type ActionContext, reportCompared } from "../actions/context.ts";
import { withListedMetadata } from "../actions/observe.ts";
import { hashUpload, measureUpload } from "../reconcile-service/uploads.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import { observedOf } from "../ledger/files/observed.ts";
import { hasSettings } from "../plan/decide.ts";
import type { FileState, LedgerFile, ListedResource } from "../plan/model.ts";
import type { SourceSync } from "../source/source.ts";
import { askPresence } from "../reconcile-service/presence.ts";
import type { Older } from "../reconcile-service/sweep.ts";

/** States of files whose resource may be exchanged: a file that failed or waits keeps its resource, too. */
const EXCHANGED: ReadonlySet<FileState> = new Set(["agreed", "failed", "parked", "skipped"]);

/**
 * Gives a file the resource that a former ledger made of it and that no list showed when the source was adopted; the one
 * that was made since is deleted. Which of the two goes is decided as by an adoption: the older one may be somebody
 * else's, the younger one is this ledger's own. Returns false if none of them was taken.
 */
export async function takeOlder(
  context: ActionContext,
  source: SourceSync,
  { row, resources }: Older,
  signal: AbortSignal,
): Promise<boolean> {
  const words = `the file had it before; ${row.docId}, made since, is deleted`;
  for (const resource of resources)
    if (await takeInstead(context, source, { row, resource, words }, signal)) return true;
  return false;
}

/**
 * Gives a file another resource that holds what the file does, and deletes the one that its row has. The other one must
 * answer for itself first, because a list also shows what was deleted. Returns false if it was not taken.
 */
export async function takeInstead(
  context: ActionContext,
  source: SourceSync,
  { row, resource, words }: { row: AcknowledgedFile; resource: ListedResource; words: string },
  signal: AbortSignal,
): Promise<boolean> {
  const before = context.ledger.files.get(row.id);
  if (before === undefined || resource.isUnfinished === true) return false;
  if (row.kind === "file" && !(await isSameUpload(context, source, before, resource, signal))) return false;
  const asked = { ...resource, title: row.title };
  if ((await askPresence(context, asked, signal)) !== "there") return false;
  return await exchange(context, source, { before, resource, words });
}

/**
 * Reports whether a resource has the bytes that a row's does. Only a row in agreement says which those are: of another
 * one, size and hash are of the file that the service does not have.
 */
async function isSameUpload(
  { remote }: ActionContext,
  { rules }: SourceSync,
  { state, sizeBytes, hash, fileUrl }: LedgerFile,
  { url }: ListedResource,
  signal: AbortSignal,
): Promise<boolean> {
  if (url === undefined || !remote.hostsFile(url)) return false;
  const known = state === "agreed" && hash !== "" ? { sizeBytes, hash } : undefined;
  const bound = { max: rules.source.maxFileBytes };
  const own = known ?? (fileUrl ? await measureUpload(remote, fileUrl, bound, signal) : undefined);
  return own !== undefined && (await hashUpload(remote, url, own.sizeBytes, signal)) === own.hash;
}

async function exchange(
  context: ActionContext,
  source: SourceSync,
  { before, resource, words }: { before: LedgerFile; resource: ListedResource; words: string },
): Promise<boolean> {
  const { ledger } = context;
  const { docId, label, digest, updatedMs, settings, url, metadataHash } = resource;
  /** With other chunk settings it is replaced by a new resource, with other metadata updated. A file that failed is not sent before it changes. */
  let isSentAgain = false;
  let left: { readonly id: number; readonly path: string; readonly docId: string } | undefined;
  await ledger.write(() => {
    // The file may have been sent since, or be in flight. One that is gone, or is on its way to the service, has no
    // use for another resource.
    const now = ledger.files.get(before.id);
    if (now?.docId === undefined || now.docId === null || now.docId !== before.docId) return;
    if (!EXCHANGED.has(now.state) || now.hash !== before.hash || source.isBusy(now.path)) return;
    if (ledger.drift.ownerOf(docId) !== undefined) return;
    const shape = { ...now.shape, settings: { ...now.shape.settings, ...settings } };
    const known = observedOf(now, shape);
    const observed = withListedMetadata({ ...known, fileUrl: url ?? known.fileUrl }, metadataHash);
    left = { id: ledger.intents.delete(source.id, now.path, now.docId), path: now.path, docId: now.docId };
    ledger.files.exchange(now.id, docId, observed, {
      ...(label !== now.label && { label }),
      ...(now.shape.kind === "content" && digest !== now.digest && { digest }),
      ...(updatedMs !== undefined && { atMs: updatedMs }),
    });
    if (resource.warning !== undefined) ledger.files.warn(docId, resource.warning);
    const isReplaced = now.state === "agreed" && !hasSettings(now.shape, settings);
    if (isReplaced) ledger.files.setState(now.id, "unsure");
    isSentAgain = isReplaced || observed.metadataHash !== known.metadataHash;
  });
  if (left === undefined) return false;
  const { path } = left;
  reportCompared(context, source, path, docId, words);
  source.deleteLater(left);
  if (isSentAgain) source.hint(path);
  return true;
}
