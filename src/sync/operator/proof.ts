import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema/sync.ts";
import type { Explanation } from "../../wire/daemon-files.ts";
import type { VersionState } from "../../wire/file-state.ts";
import { openCollections } from "../actions/collections.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import { sentSignature } from "../plan/marker.ts";
import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { openPacer } from "../remote/pacer.ts";
import { openRemote } from "../remote/remote.ts";
import type { ServiceAddress } from "../remote/transport.ts";
import { openRules, type WatchedSource } from "../rules/rules.ts";
import { scanSource } from "../scan/scan.ts";
import { TIMING } from "../plan/timing.ts";
import { LIST_LAG_MS } from "../identity/list.ts";
import { explain } from "../why/explain.ts";
import { type ProvenFile, type ProofContext, type Proving, listContent, proveFile } from "./file-proof.ts";
import { openForReading } from "./offline.ts";

/** Totals for the files of a source: by state, as in its status, and of the searchable ones by what was proven. */
export interface ProofSums extends Readonly<Record<VersionState | "agree" | "differ", number>> {
  /** Wanted files: searchable, being read, waiting or failed. */
  readonly files: number;
  readonly unproven: Readonly<Record<NonNullable<ProvenFile["unproven"]>, number>>;
  /** Bytes read from disk for this proof. */
  readonly bytes: number;
  /** Resources in the scope that no row owns. */
  readonly unowned: number;
}

/** Receives the proof piece by piece, because it may be too long for memory. */
export interface ProofReader {
  begin(source: string): void;
  file(file: ProvenFile): void;
  end(sums: ProofSums): void;
}

export interface ProofOptions {
  readonly stateDir: string;
  readonly service: ServiceAddress & { readonly listLagMs?: number };
  readonly sources: readonly WatchedSource[];
  readonly sync: SyncConfig;
  /** Asks the running daemon about a file; undefined: none runs. */
  readonly askWhy: (path: string) => Promise<Explanation | undefined>;
  readonly signal: AbortSignal;
}

/** How long to wait for a service that does not answer. */
const PATIENCE_MS = 30_000;
/** Files read between two turns of the event loop. */
const READ_AT_ONCE = 32;
/** Rows read between two turns of the event loop. */
const PAGE_ROWS = 1000;

/**
 * Proves file by file that disk, ledger and service agree: reads and hashes every file now, lists every resource, and
 * fetches every upload. Changes nothing, so a daemon may be running, which is asked for the states of files. Returns whether no
 * file waits or differs; undefined if there is no ledger. Throws `service_unreachable`, `key_refused`, `list_refused`.
 */
export async function proveAgreement(
  options: ProofOptions,
  reader: ProofReader,
): Promise<boolean | undefined> {
  const { stateDir, service, sources: watched, sync, signal } = options;
  const reading = openForReading(stateDir);
  if (reading === undefined) return undefined;
  const pacer = openPacer({
    widthMax: sync.concurrency,
    patienceMs: () => PATIENCE_MS,
    random: Math.random,
    onWidth: () => undefined,
    onTrouble: () => undefined,
  });
  const timeoutMs = sync.requestTimeoutMs;
  const remote = openRemote({ address: service, pacer, connections: 2, timeoutMs, now: Date.now });
  try {
    const { drift, sources: rows } = reading.ledger;
    const store = { note: () => undefined, write: async () => await Promise.resolve(), sources: rows };
    const collections = openCollections(store, remote);
    const context = { ledger: { drift }, remote, collections, random: Math.random, signal, timing: TIMING };
    let agrees = true;
    for (const source of watched) {
      const row = rows.peek(source.absolutePath, source.ownerId, source.collection);
      reader.begin(source.absolutePath);
      const lagMs = service.listLagMs ?? LIST_LAG_MS;
      const why = async (path: RelativePath): Promise<Explanation> => {
        const at = join(source.absolutePath, path);
        return (await options.askWhy(at)) ?? (await explain(reading.ledger, watched, at, signal));
      };
      const id = row?.id ?? -1;
      const signature = sentSignature(drift.signature(id));
      const proving = { id, source, lagMs, signature, why, uploadsMails: rows.readsMails(), signal };
      const sums = await proveSource(context, proving, (file) => reader.file(file));
      agrees &&= sums.differ + sums.unproven.too_new + sums.reading + sums.waiting === 0;
      reader.end(sums);
    }
    return agrees;
  } finally {
    reading.close();
    pacer.close(new Error("the proof is done"));
    await remote.close();
  }
}

async function proveSource(
  context: ProofContext,
  proving: Proving,
  onFile: (file: ProvenFile) => void,
): Promise<ProofSums> {
  const { drift } = context.ledger;
  const { id, source, lagMs, signal } = proving;
  const scope = { tier: source.collection, ownerId: source.ownerId };
  const states = { searchable: 0, reading: 0, waiting: 0, failed: 0, held: 0, skipped: 0 };
  const unproven = { not_fetched: 0, own_form: 0, too_new: 0 };
  let [agree, differ, bytes] = [0, 0, 0];
  const nowMs = Date.now();
  const isRecent = (docId: string): boolean => (drift.byDoc(docId)?.acknowledgedMs ?? 0) > nowMs - lagMs;
  const content = await listContent(context, scope);
  const rules = openRules(source);
  const prove = async (
    path: RelativePath,
    entry: ScanEntry | undefined,
    row: AcknowledgedFile | undefined,
  ): Promise<void> => {
    signal.throwIfAborted();
    const found = await proveFile(context, content, { ...proving, rules }, { path, entry, row });
    if (found === undefined) return;
    const isTooNew = found.agrees === false && found.docId !== null && isRecent(found.docId);
    const file = isTooNew ? { ...found, agrees: null, unproven: "too_new" as const } : found;
    states[file.state] += 1;
    agree += Number(file.agrees === true);
    differ += Number(file.agrees === false);
    if (file.unproven !== undefined) unproven[file.unproven] += 1;
    onFile(file);
  };
  const scan = await scanSource(source.absolutePath, rules, { signal });
  const paths = new Set(scan.entries.map(({ path }) => path));
  for (const [index, entry] of scan.entries.toSorted(byPath).entries()) {
    await prove(entry.path, entry, drift.byPath(id, entry.path));
    bytes += entry.sizeBytes;
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
  for (let afterId = 0; ;) {
    const page = drift.page(id, afterId, PAGE_ROWS);
    for (const row of page) if (!paths.has(row.path)) await prove(row.path, undefined, row);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) break;
    afterId = last.id;
    await nextTurn();
  }
  const files = states.searchable + states.reading + states.waiting + states.failed;
  return { files, ...states, agree, differ, unproven, bytes, unowned: content.unowned };
}

function byPath(a: ScanEntry, b: ScanEntry): number {
  return a.path < b.path ? -1 : 1;
}
