import { join } from "node:path";
import { metadataOf, observe } from "../actions/observe.ts";
import { readDocument } from "../read/read.ts";
import type { SourceDocument } from "../read/outcome.ts";
import type { SecretCheck } from "../read/secret-check.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { decide, uploadedHash } from "../plan/decide.ts";
import { type ActionKind, EMPTY_FILE, type RelativePath } from "../plan/model.ts";
import { isBlank } from "../plan/reconcile.ts";
import type { SourceSync } from "../source/source.ts";
import { codeWords } from "../../lib/system-error.ts";

/** An action that a pass would take, or the reason why it would not. */
export interface PlannedAction {
  readonly source: string;
  /** Empty for the source as a whole. */
  readonly path: RelativePath;
  readonly from?: RelativePath;
  readonly docId?: string;
  readonly action: Exclude<ActionKind, "touch"> | "discard" | "refuse" | "skip" | "hold" | "halt";
  readonly reason?: string;
  /** The size of a text or file to send: bytes of the file, and characters of its text unless the service reads it. */
  readonly sends?: { readonly bytes: number; readonly chars?: number };
}

/**
 * Plans a source as a pass would: reads files, but sends and writes nothing. The result has no order. `row` is the
 * source's row as it would be after a pass. If the signal aborts, stops the source and throws the signal's reason.
 */
export async function previewOf(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  signal?: AbortSignal,
  check?: SecretCheck,
): Promise<PlannedAction[]> {
  signal?.throwIfAborted();
  const stop = (): void => source.stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await plan(ledger, row, source, signal, check);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** The approved deletes of sources that left the configuration; `configured` are the folders of those that did not. */
export function removalsOf(ledger: Ledger, configured: ReadonlySet<string>): PlannedAction[] {
  return ledger.sources
    .removed()
    .filter(({ approved, path }) => approved && !configured.has(path))
    .flatMap(({ id, path: source }) => {
      const rows = [...ledger.files.all(id), ...ledger.intents.deletes(id)];
      return rows.flatMap(({ path, docId }) =>
        docId === null ? [] : [{ source, path, action: "delete" as const, docId }],
      );
    });
}

async function plan(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  signal: AbortSignal | undefined,
  check: SecretCheck | undefined,
): Promise<PlannedAction[]> {
  if (row.lost !== null) return [{ source: row.path, path: "", action: "halt", reason: row.lost }];
  const { candidates, refused, skipped, braked } = await source.preview(row);
  const { reason } = braked;
  const why = reason === undefined ? {} : { reason };
  if (braked.halted) return [{ source: row.path, path: "", action: "halt", ...why }];

  const planned: PlannedAction[] = [];
  const add = (
    action: PlannedAction["action"],
    path: RelativePath,
    more: Pick<PlannedAction, "reason" | "sends"> & {
      from?: RelativePath | undefined;
      docId?: string | null | undefined;
    } = {},
  ): void => {
    const { from, docId, ...words } = more;
    const origin = from === undefined ? {} : { from };
    const resource = typeof docId === "string" ? { docId } : {};
    planned.push({ source: row.path, path, action, ...origin, ...resource, ...words });
  };
  for (const each of refused) add("refuse", each.path, { reason: each.reason });
  for (const { entry, reason: words } of skipped) add("skip", entry.path, { reason: words });
  for (const candidate of candidates) {
    signal?.throwIfAborted();
    const { entry, known, from } = candidate;
    const file = known === undefined ? undefined : ledger.files.get(known.id);
    const read = await readDocument(join(row.path, entry.path), entry, source.rules, {
      uploadsMails: ledger.sources.readsMails(),
      uploadedHash: uploadedHash(file),
    });
    if (read.kind === "skipped") {
      const action = known !== undefined && known.docId !== null ? "refuse" : "skip";
      add(action, entry.path, { reason: read.reason });
    }
    if (read.kind === "refused") add("refuse", entry.path, { reason: read.reason });
    if (read.kind === "unreadable")
      add("refuse", entry.path, { reason: `cannot be read: ${codeWords(read.code)}` });
    if (read.kind !== "document") continue;
    if (isBlank(read.document.entry, file)) {
      add("skip", entry.path, { reason: EMPTY_FILE });
      continue;
    }
    const sent = ledger.sources.takesMetadata() ? metadataOf(read.document, source.rules) : undefined;
    const action = decide(observe(read.document, 0, 0, sent), file, from !== undefined);
    if (action === "touch") continue;
    const isTextSent = file?.state !== "agreed" || file.hash !== read.document.hash;
    const secret = isTextSent
      ? await check?.(join(row.path, entry.path), read.document, source.rules, sent)
      : undefined;
    const sends = isTextSent ? { sends: sizeOf(read.document) } : {};
    if (secret === undefined) add(action, entry.path, { from, docId: file?.docId, ...sends });
    else add("refuse", entry.path, { reason: secret.message });
  }
  // A path to which another file was moved still has a file: its former resource is superfluous.
  const movedTo = new Set(candidates.filter(({ from }) => from !== undefined).map(({ entry }) => entry.path));
  for (const { path, docId } of braked.deletes)
    add(movedTo.has(path) ? "discard" : "delete", path, { docId });
  for (const { path, docId } of braked.held) add("hold", path, { docId, ...why });
  // The next pass also carries out deletes that an earlier process left undone.
  const leaving = new Set([...braked.deletes, ...braked.held].map(({ id }) => id));
  for (const { known, from } of candidates)
    if (known !== undefined && from !== undefined) leaving.add(known.id);
  for (const { path, docId } of ledger.intents.deletes(row.id)) {
    const living = ledger.files.living(row.id, path);
    const hasFile = movedTo.has(path) || (living !== undefined && !leaving.has(living.id));
    add(hasFile ? "discard" : "delete", path, { docId });
  }
  return planned;
}

function sizeOf(document: SourceDocument): NonNullable<PlannedAction["sends"]> {
  const bytes = document.sizeBytes;
  // Nothing but a thread makes JSON of texts, and none reads here.
  return document.kind === "content" ? { bytes, chars: document.content.length } : { bytes };
}
