import { join } from "node:path";
import { metadataOf, withMarker } from "../send/observe.ts";
import { readDocument } from "../scan/read/read.ts";
import type { SecretCheck } from "../scan/read/secret-check.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { uploadedHash } from "../plan/decide.ts";
import type { ActionKind, Candidate, RelativePath } from "../plan/model.ts";
import { hasSameBytes } from "../plan/versions.ts";
import type { SourceSync } from "../daemon/source/source.ts";
import { stepAfterReading } from "./why/next.ts";

/** An action that a pass would take, or the reason why it would not. */
export interface PlannedAction {
  readonly source: string;
  /** Empty for the source as a whole. */
  readonly path: RelativePath;
  readonly from?: RelativePath;
  readonly docId?: string;
  readonly action: Exclude<ActionKind, "touch"> | "discard" | "refuse" | "skip" | "hold" | "halt";
  readonly reason?: string;
}

export interface PreviewOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default: files with secrets would be sent. */
  readonly check?: SecretCheck | undefined;
}

/**
 * Plans a source as a pass would: reads files, but sends and writes nothing. The result has no order. `row` is the
 * source's row as it would be after a pass. If the signal aborts, stops the source and throws the signal's reason.
 */
export async function previewOf(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  options: PreviewOptions,
): Promise<PlannedAction[]> {
  const { signal } = options;
  signal?.throwIfAborted();
  const stop = (): void => source.stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await plan(ledger, row, source, options);
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

type Add = (
  action: PlannedAction["action"],
  path: RelativePath,
  more?: Pick<PlannedAction, "reason"> & {
    from?: RelativePath | undefined;
    docId?: string | null | undefined;
  },
) => void;

/** Files that are planned at a time: as many as processes read PDFs. */
const FILES_AT_ONCE = 2;

async function plan(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  options: PreviewOptions,
): Promise<PlannedAction[]> {
  if (row.lost !== null) return [{ source: row.path, path: "", action: "halt", reason: row.lost }];
  const { candidates, refused, skipped, braked } = await source.preview(row);
  const { reason } = braked;
  const why = reason === undefined ? {} : { reason };
  if (braked.halted) return [{ source: row.path, path: "", action: "halt", ...why }];

  const planned: PlannedAction[] = [];
  const add: Add = (action, path, { from, docId, ...words } = {}) => {
    const origin = from === undefined ? {} : { from };
    const resource = typeof docId === "string" ? { docId } : {};
    planned.push({ source: row.path, path, action, ...origin, ...resource, ...words });
  };
  for (const each of refused) add("refuse", each.path, { reason: each.reason });
  for (const { entry, reason: words } of skipped) add("skip", entry.path, { reason: words });
  const rest = candidates.values();
  const planRest = async (): Promise<void> => {
    for (const candidate of rest) await planFile(ledger, row.path, source, candidate, options, add);
  };
  // All end before an error is thrown: the caller closes the ledger then.
  const ends = await Promise.allSettled(Array.from({ length: FILES_AT_ONCE }, planRest));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  // A path to which another file was moved still has a file: its former resource is superfluous.
  const movedTo = new Set(candidates.filter(({ from }) => from !== undefined).map(({ entry }) => entry.path));
  for (const { path, docId } of braked.deletes)
    add(movedTo.has(path) ? "discard" : "delete", path, { docId });
  const isKept = source.rules.source.deletes === "never";
  for (const { path, docId } of isKept ? [] : braked.held) add("hold", path, { docId, ...why });
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

/** Adds what a pass would do with a file that is new or has changed. */
async function planFile(
  ledger: Ledger,
  root: string,
  { rules, signature }: SourceSync,
  { entry, known, from }: Candidate,
  { signal, check }: PreviewOptions,
  add: Add,
): Promise<void> {
  signal?.throwIfAborted();
  const { path } = entry;
  const row = known === undefined ? undefined : ledger.files.get(known.id);
  const read = await readDocument(join(root, path), entry, rules, {
    uploadsMails: ledger.sources.declared().readsMails,
    uploadedHash: uploadedHash(row),
  });
  const document = read.kind === "document" ? read.document : undefined;
  const { takesMetadata } = ledger.sources.declared();
  const metadata = document !== undefined && takesMetadata ? metadataOf(document, rules) : undefined;
  const marked = document && { kind: "document" as const, document: withMarker(document, signature) };
  const { action, why } = stepAfterReading({ read: marked ?? read, metadata, row, from });
  if (action === "touch" || action === "nothing") return;
  if (document === undefined || action === "skip" || action === "refuse" || action === "wait") {
    add(action === "skip" ? "skip" : "refuse", path, { reason: why });
    return;
  }
  const { hash, recipe } = document;
  const isTextSent = row?.state !== "agreed" || !hasSameBytes({ hash, ...recipe }, row);
  const secret = isTextSent ? await check?.(document, rules, metadata) : undefined;
  if (secret === undefined) add(action, path, { from, docId: row?.docId });
  else add("refuse", path, { reason: secret });
}
