import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema.ts";
import { openNumberSet } from "../../lib/number-set.ts";
import type { Tier } from "../../wire/primitives.ts";
import { openCollections } from "../actions/collections.ts";
import { observe } from "../actions/observe.ts";
import { hashUpload } from "../reconcile-service/uploads.ts";
import { readDocument } from "../read/read.ts";
import { openDrift, type AcknowledgedFile, type Drift } from "../ledger/drift.ts";
import type { Observed } from "../ledger/files.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { openSqlite } from "../ledger/open.ts";
import { openSources } from "../ledger/sources.ts";
import { rulesKeyOf } from "../pass/pass.ts";
import { alterationsOf } from "../plan/audit.ts";
import type { ListedResource, ScanEntry } from "../plan/model.ts";
import { openPacer } from "../remote/pacer.ts";
import { openRemote } from "../remote/remote.ts";
import type { ServiceAddress } from "../remote/transport.ts";
import { openRules, type Rules, type WatchedSource } from "../rules/rules.ts";
import { scanSource } from "../scan/scan.ts";
import { TIMING } from "../plan/timing.ts";
import {
  compareWithService,
  LIST_LAG_MS,
  type CompareContext,
  type Listed,
} from "../reconcile-service/compare.ts";

/** One file on disk, in the ledger and at the service. */
export interface ProvenFile {
  readonly path: string;
  readonly docId: string | null;
  /** SHA-256 of the bytes on disk, read for this proof, hex; null if there is no file or it cannot be read. */
  readonly disk: string | null;
  /** SHA-256 of the bytes that the service acknowledged, according to the ledger. */
  readonly ledger: string | null;
  /**
   * What the service has: the digest of a text, the SHA-256 of an uploaded file's bytes, fetched for this proof, or the
   * address of a link. Null if it has nothing.
   */
  readonly service: string | null;
  /** What the service should have, in the same form. */
  readonly expected: string | null;
  /**
   * `waiting`: not sent yet. `leftOut`: not a file for a knowledge base, or refused. `notFetched`: the service does not
   * return the uploaded file; everything else agrees.
   */
  readonly verdict: "agrees" | "differs" | "waiting" | "leftOut" | "notFetched";
  /** Why it does not agree, for a person. */
  readonly reason?: string;
}

/** Totals for the files of a source. */
export interface ProofSums {
  readonly files: number;
  readonly agrees: number;
  readonly differs: number;
  readonly waiting: number;
  readonly leftOut: number;
  readonly notFetched: number;
  /** Those of `waiting` that were sent so recently that a lagging list may not show them. */
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
    const configured = new Map<Tier, string>(
      watched.flatMap(({ collection, collectionId }) =>
        collectionId === undefined ? [] : [[collection, collectionId] as const],
      ),
    );
    const store = { note: () => undefined, write: async () => await Promise.resolve(), sources: rows };
    const collections = openCollections(store, remote, configured);
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

type ProofContext = CompareContext & { readonly ledger: { readonly drift: Drift } };

interface Proving {
  readonly id: number;
  readonly source: WatchedSource;
  /** Maximum lag of the service's list behind its answers. */
  readonly lagMs: number;
  /** Whether mails are uploaded, according to the ledger. */
  readonly uploadsMails: boolean;
  readonly signal: AbortSignal;
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

/** The service's list, by rows. */
interface ServiceContent {
  /** The listed resource: as the row has it, different, or missing. */
  resource(row: AcknowledgedFile): "as acknowledged" | ListedResource | undefined;
  /** Digest of the text, or the address; null if there is none. */
  of(row: AcknowledgedFile): string | null;
  /** Current address of an uploaded file at the service. */
  addressOf(row: AcknowledgedFile): string | undefined;
  readonly unowned: number;
}

async function listContent(
  context: ProofContext,
  scope: Parameters<typeof compareWithService>[1],
): Promise<ServiceContent> {
  let sound = openNumberSet();
  let altered = new Map<number, ListedResource>();
  let addresses = new Map<number, string>();
  let unowned = 0;
  const visit = ({ resource, owner: row }: Listed): void => {
    if (row === undefined || typeof row === "string") {
      unowned += 1;
      return;
    }
    if (alterationsOf({ ...row, state: "agreed", storedDigest: null }, resource).length === 0)
      sound.add(row.id);
    else altered.set(row.id, resource);
    // A service on this machine lists them with its current port.
    if (row.kind === "file" && resource.url !== undefined && resource.url !== row.fileUrl)
      addresses.set(row.id, resource.url);
  };
  await compareWithService(context, scope, () => {
    [sound, altered, addresses, unowned] = [openNumberSet(), new Map(), new Map(), 0];
    return visit;
  });
  const resource: ServiceContent["resource"] = (row) =>
    sound.has(row.id) ? "as acknowledged" : altered.get(row.id);
  return {
    resource,
    of: (row) => {
      const has = resource(row);
      if (has === undefined) return null;
      const { digest, url } =
        has === "as acknowledged" ? { digest: row.digest, url: row.fileUrl ?? undefined } : has;
      return row.kind === "content" ? digest : (url ?? null);
    },
    addressOf: (row) => addresses.get(row.id) ?? row.fileUrl ?? undefined,
    get unowned() {
      return unowned;
    },
  };
}

async function proveFile(
  { remote, ledger }: ProofContext,
  {
    id,
    rules,
    entry,
    content,
    uploadsMails,
    signal,
  }: { rules: Rules; entry: ScanEntry; content: ServiceContent } & Pick<
    Proving,
    "id" | "uploadsMails" | "signal"
  >,
): Promise<ProvenFile> {
  const { path } = entry;
  const row = ledger.drift.byPath(id, path);
  const read = await readDocument(join(rules.source.absolutePath, path), entry, rules, {
    signal,
    uploadsMails,
    uploadedHash: row?.state === "agreed" && row.kind === "file" ? row.hash : undefined,
  });
  const facts = { path, docId: row?.docId ?? null, ledger: row?.hash ?? null };
  const service = row === undefined ? null : content.of(row);
  if (read.kind !== "document") {
    const reason =
      "reason" in read ? read.reason : read.kind === "unreadable" ? read.code : `it is ${read.kind}`;
    const isLeftOut = (read.kind === "skipped" || read.kind === "refused") && row === undefined;
    return {
      ...facts,
      disk: null,
      service,
      expected: null,
      verdict: isLeftOut ? "leftOut" : "waiting",
      reason,
    };
  }
  const observed = observe(read.document, rulesKeyOf(rules), Date.now());
  const disk = observed.hash;
  const expected =
    observed.shape.kind === "content"
      ? observed.digest
      : observed.shape.kind === "link"
        ? (observed.fileUrl ?? null)
        : disk;
  const compared = { ...facts, disk, service, expected };
  const judgement = judgeListed(row, observed, content);
  if (judgement !== undefined) return { ...compared, ...judgement };
  const address = row === undefined ? undefined : content.addressOf(row);
  const fetched =
    address !== undefined && remote.hostsFile(address)
      ? await hashUpload(remote, address, entry.sizeBytes, signal)
      : undefined;
  return { ...compared, service: fetched ?? null, ...judgeUpload(fetched, disk) };
}

type Judgement = Pick<ProvenFile, "verdict" | "reason">;

/** Judges a file by its row and the listed resource. Undefined for an upload that agrees so far: its bytes decide. */
function judgeListed(
  row: AcknowledgedFile | undefined,
  observed: Observed,
  content: ServiceContent,
): Judgement | undefined {
  if (row === undefined)
    return observed.entry.sizeBytes === 0
      ? { verdict: "leftOut", reason: "it is empty" }
      : { verdict: "waiting", reason: "it has no resource" };
  if (row.state !== "agreed") return { verdict: "waiting", reason: `the ledger says ${row.state}` };
  if (row.hash !== observed.hash) return { verdict: "waiting", reason: "the file changed since it was sent" };
  const listed = content.resource(row);
  if (listed === undefined) return { verdict: "differs", reason: "the service does not have it" };
  if (listed !== "as acknowledged" || row.label !== observed.label)
    return {
      verdict: "differs",
      reason: "the service has another text, title, description, address or metadata",
    };
  if (row.kind === "file") return undefined;
  return content.of(row) === null || row.digest !== observed.digest
    ? { verdict: "differs", reason: "the service has another text" }
    : { verdict: "agrees" };
}

/** Judges an upload by the hash of its fetched bytes; undefined if the service did not return them. */
function judgeUpload(fetched: string | undefined, disk: string): Judgement {
  if (fetched === undefined) return { verdict: "notFetched", reason: "the service does not return the file" };
  return fetched === disk
    ? { verdict: "agrees" }
    : { verdict: "differs", reason: "the uploaded bytes differ" };
}

function byPath(a: ScanEntry, b: ScanEntry): number {
  return a.path < b.path ? -1 : 1;
}
