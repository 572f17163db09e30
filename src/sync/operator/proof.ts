import { existsSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema/sync.ts";
import { openCollections } from "../actions/collections.ts";
import { openDrift } from "../ledger/drift/drift.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { openSqlite } from "../ledger/database/open.ts";
import { openSources } from "../ledger/sources/sources.ts";
import type { ScanEntry } from "../plan/model.ts";
import { openPacer } from "../remote/pacer.ts";
import { openRemote } from "../remote/remote.ts";
import type { ServiceAddress } from "../remote/transport.ts";
import { openRules, type WatchedSource } from "../rules/rules.ts";
import { scanSource } from "../scan/scan.ts";
import { TIMING } from "../plan/timing.ts";
import { LIST_LAG_MS } from "../reconcile-service/compare.ts";
import { type ProvenFile, type ProofContext, type Proving, listContent, proveFile } from "./file-proof.ts";

/** Totals for the files of a source. */
export interface ProofSums {
  readonly files: number;
  readonly agrees: number;
  readonly differs: number;
  readonly waiting: number;
  readonly leftOut: number;
  readonly notFetched: number;
  /** Waiting files that were sent so recently that a lagging list may not show them. */
  readonly unjudged: number;
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
 * fetches every upload. Changes nothing, so a daemon may be running; what it is sending is `waiting`. Returns whether
 * all files agree; undefined if there is no ledger. Throws `service_unreachable`, `key_refused`, `list_refused`.
 */
export async function proveAgreement(
  options: ProofOptions,
  reader: ProofReader,
): Promise<boolean | undefined> {
  const { stateDir, service, sources: watched, sync, signal } = options;
  if (!existsSync(ledgerFile(stateDir))) return undefined;
  const pacer = openPacer({
    widthMax: sync.concurrency,
    patienceMs: () => PATIENCE_MS,
    random: Math.random,
    onWidth: () => undefined,
    onTrouble: () => undefined,
  });
  const timeoutMs = sync.requestTimeoutMs;
  const remote = openRemote({ address: service, pacer, connections: 2, timeoutMs, now: Date.now });
  const db = openSqlite(ledgerFile(stateDir), { readonly: true });
  try {
    const rows = openSources(db);
    const drift = openDrift(db);
    const store = { note: () => undefined, write: async () => await Promise.resolve(), sources: rows };
    const collections = openCollections(store, remote);
    const context = { ledger: { drift }, remote, collections, random: Math.random, signal, timing: TIMING };
    let agrees = true;
    for (const source of watched) {
      const row = rows.peek(source.absolutePath, source.ownerId, source.collection);
      reader.begin(source.absolutePath);
      const lagMs = service.listLagMs ?? LIST_LAG_MS;
      const proving = { id: row?.id ?? -1, source, lagMs, uploadsMails: rows.readsMails(), signal };
      const sums = await proveSource(context, proving, (file) => {
        agrees &&= file.verdict === "agrees" || file.verdict === "leftOut" || file.verdict === "notFetched";
        reader.file(file);
      });
      reader.end(sums);
    }
    return agrees;
  } finally {
    db.close();
    pacer.close(new Error("the proof is done"));
    await remote.close();
  }
}

async function proveSource(
  context: ProofContext,
  { id, source, lagMs, uploadsMails, signal }: Proving,
  onFile: (file: ProvenFile) => void,
): Promise<ProofSums> {
  const { drift } = context.ledger;
  const scope = { tier: source.collection, ownerId: source.ownerId };
  const counts = { agrees: 0, differs: 0, waiting: 0, leftOut: 0, notFetched: 0 };
  let bytes = 0;
  let unjudged = 0;
  const nowMs = Date.now();
  const recent = new Set(drift.doneSince(drift.lastActivity(), nowMs - lagMs, nowMs).docIds);
  /** Reports a recent difference as `waiting`, because the list may be older than the change. */
  const judged = (file: ProvenFile): ProvenFile => {
    if (file.verdict !== "differs" || file.docId === null || !recent.has(file.docId)) return file;
    unjudged += 1;
    return { ...file, verdict: "waiting", reason: TOO_NEW };
  };
  const report = (found: ProvenFile): void => {
    const file = judged(found);
    counts[file.verdict] += 1;
    onFile(file);
  };
  const content = await listContent(context, scope);
  const rules = openRules(source);
  const scan = await scanSource(source.absolutePath, rules, { signal });
  const paths = new Set(scan.entries.map(({ path }) => path));
  for (const [index, entry] of scan.entries.toSorted(byPath).entries()) {
    signal.throwIfAborted();
    report(await proveFile(context, { id, rules, entry, content, uploadsMails, signal }));
    bytes += entry.sizeBytes;
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
  for (let afterId = 0; ;) {
    const page = drift.page(scope, afterId, PAGE_ROWS);
    for (const row of page) {
      if (row.source !== id || paths.has(row.path)) continue;
      const reason = row.state === "held" ? "the file is gone, and its delete is held" : "the file is gone";
      const { path, docId, hash: ledger } = row;
      const has = content.of(row);
      report({ path, docId, disk: null, ledger, service: has, expected: null, verdict: "waiting", reason });
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) break;
    afterId = last.id;
    await nextTurn();
  }
  const files = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return { files, ...counts, unjudged, bytes, unowned: content.unowned };
}

const TOO_NEW = "it was just sent, and the service's list may lag: not checked yet";

function byPath(a: ScanEntry, b: ScanEntry): number {
  return a.path < b.path ? -1 : 1;
}
