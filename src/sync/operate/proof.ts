import { createHash } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema/sync.ts";
import type { Explanation } from "../../wire/daemon-files.ts";
import type { VersionState } from "../../wire/file-state.ts";
import { openCollections } from "../send/collections.ts";
import { observe, withMarker } from "../send/observe.ts";
import { alterationWords } from "../identity/apply.ts";
import { compare, NO_MEMORY } from "../identity/compare.ts";
import { LIST_LAG_MS } from "../identity/list.ts";
import { gather, type GatherContext, type Gathered, type IdentitySource } from "../identity/situation.ts";
import type { FileRow } from "../ledger/files/rows.ts";
import { rulesKeyOf } from "../daemon/pass/rules-key.ts";
import { uploadedHash } from "../plan/decide.ts";
import { sentSignature } from "../plan/marker.ts";
import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { TIMING } from "../plan/timing.ts";
import { hasSameBytes } from "../plan/versions.ts";
import { readDocument } from "../scan/read/read.ts";
import { openClient } from "../send/remote/client.ts";
import type { Remote } from "../send/remote/remote.ts";
import type { ServiceAddress } from "../send/remote/transport.ts";
import { openRules, type WatchedSource } from "../scan/rules/rules.ts";
import { scanSource } from "../scan/scan.ts";
import { explain } from "./why/explain.ts";
import { openForReading } from "./offline.ts";

/** One file on disk, in the ledger and at the service. */
export interface ProvenFile {
  readonly path: string;
  readonly docId: string | null;
  /** SHA-256 of the bytes on disk, read for this proof, hex; null if there is no file or it cannot be read. */
  readonly disk: string | null;
  /** SHA-256 of the bytes that the service acknowledged, according to the ledger. */
  readonly ledger: string | null;
  /** SHA-256 of the uploaded bytes, fetched for this proof; null for a text or a link, and where they were not fetched. */
  readonly service: string | null;
  /** State of the newest version, and why, as everywhere. */
  readonly state: VersionState;
  readonly reason: string;
  /** Of a searchable file, whether the service has what is on disk; null: another state, or `unproven` says why not. */
  readonly agrees: boolean | null;
  /**
   * `not_fetched`: the service does not return the uploaded file. `too_new`: it differs, but the service's list may be older than
   * the file's last change.
   */
  readonly unproven?: "not_fetched" | "too_new";
}

/** Totals for the files of a source: by state, as in its status, and of the searchable ones by what was proven. */
export interface ProofSums extends Readonly<Record<VersionState | "agree" | "differ", number>> {
  /** Wanted files: searchable, being read, waiting or failed. */
  readonly files: number;
  readonly unproven: Readonly<Record<NonNullable<ProvenFile["unproven"]>, number>>;
  /** Deletes that the service refuses. */
  readonly deletesRefused: number;
  /** Paths of which nothing is known. */
  readonly unreadable: number;
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

/**
 * Proves file by file that disk, ledger and service agree: reads and hashes every file now, lists every resource, and
 * fetches every upload. Changes nothing, so a daemon may be running, which is asked for the states of files. Returns whether all
 * agree, as an audit means it; undefined if there is no ledger. Throws `service_unreachable`, `key_refused`, `list_refused`.
 */
export async function proveAgreement(
  options: ProofOptions,
  reader: ProofReader,
): Promise<boolean | undefined> {
  const { stateDir, service, sources: watched, sync, signal } = options;
  const reading = openForReading(stateDir);
  if (reading === undefined) return undefined;
  const timeoutMs = sync.requestTimeoutMs;
  const remote = openClient({ address: service, connections: 2, timeoutMs, patienceMs: PATIENCE_MS });
  try {
    const { ledger } = reading;
    const store = {
      note: () => undefined,
      write: async () => await Promise.resolve(),
      sources: ledger.sources,
    };
    const collections = openCollections(store, remote);
    const context = { ledger, remote, collections, random: Math.random, signal, timing: TIMING };
    let agrees = true;
    for (const source of watched) {
      const row = ledger.sources.peek(source.absolutePath, source.ownerId, source.collection);
      const id = row?.id ?? -1;
      reader.begin(source.absolutePath);
      const sums = await proveSource(
        context,
        {
          id,
          root: source.absolutePath,
          rules: openRules(source),
          signature: sentSignature(ledger.contacts.signature(id)),
          lagMs: service.listLagMs ?? LIST_LAG_MS,
          uploadsMails: ledger.sources.declared().readsMails,
          deletesRefused: row?.deletesRefused ?? 0,
          why: async (path) => {
            const at = join(source.absolutePath, path);
            return (await options.askWhy(at)) ?? (await explain(ledger, watched, at, signal));
          },
        },
        (file) => reader.file(file),
      );
      const { files, agree, unproven, held, deletesRefused, unreadable } = sums;
      agrees &&= agree + unproven.not_fetched === files && held + deletesRefused + unreadable === 0;
      reader.end(sums);
    }
    return agrees;
  } finally {
    reading.close();
    await remote.close();
  }
}

/** A source to prove. */
interface Proving extends IdentitySource {
  /** Maximum lag of the service's list behind its answers. */
  readonly lagMs: number;
  /** Whether mails are uploaded, according to the ledger. */
  readonly uploadsMails: boolean;
  /** Deletes that the service refuses, according to the ledger. */
  readonly deletesRefused: number;
  /** Explains a file, by the running daemon or by the ledger. */
  readonly why: (path: RelativePath) => Promise<Explanation>;
}

type ProofContext = GatherContext & { readonly remote: Remote };

async function proveSource(
  context: ProofContext,
  proving: Proving,
  onFile: (file: ProvenFile) => void,
): Promise<ProofSums> {
  const { files: rows } = context.ledger;
  const { signal } = context;
  const states = { searchable: 0, reading: 0, waiting: 0, failed: 0, held: 0, skipped: 0 };
  const unproven = { not_fetched: 0, too_new: 0 };
  let [agree, differ, bytes] = [0, 0, 0];
  const recentMs = Date.now() - proving.lagMs;
  const gathered = await gather(context, proving, { signal });
  const differences = gathered === undefined ? new Map<string, string>() : differencesOf(gathered);
  const prove = async (path: RelativePath, entry: ScanEntry | undefined, row: FileRow | undefined) => {
    signal.throwIfAborted();
    const found = await proveFile(context, proving, differences, path, entry, row);
    if (found === undefined) return;
    const isTooNew = found.agrees === false && (row?.acknowledgedMs ?? 0) > recentMs;
    const file = isTooNew ? { ...found, agrees: null, unproven: "too_new" as const } : found;
    states[file.state] += 1;
    agree += Number(file.agrees === true);
    differ += Number(file.agrees === false);
    if (file.unproven !== undefined) unproven[file.unproven] += 1;
    onFile(file);
  };
  const scan = gathered === undefined ? await scanSource(proving.root, proving.rules, { signal }) : undefined;
  const entries = gathered?.entries ?? new Map(scan?.entries.map((each) => [each.path, each]));
  const unreadable = gathered?.unreadable ?? scan?.unreadable.length ?? 0;
  const sorted = [...entries.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  for (const [index, entry] of sorted.entries()) {
    const known = rows.living(proving.id, entry.path);
    await prove(entry.path, entry, known && rows.get(known.id));
    bytes += entry.sizeBytes;
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
  for (const { id, path, docId } of rows.all(proving.id))
    if (docId !== null && !entries.has(path)) await prove(path, undefined, rows.get(id));
  const files = states.searchable + states.reading + states.waiting + states.failed;
  const unowned = gathered?.unowned.size ?? 0;
  const { deletesRefused } = proving;
  return { files, ...states, agree, differ, unproven, deletesRefused, unreadable, bytes, unowned };
}

/** What the comparison says of resources that are not as they were acknowledged, by resource. */
function differencesOf({ situation, altered }: Gathered): ReadonlyMap<string, string> {
  const found = new Map(altered.map(({ row, alterations }) => [row.docId, alterationWords(alterations)]));
  const now = { memory: NO_MEMORY, isApproved: false, nowMs: Date.now(), lagMs: 0 };
  const { verdicts, holds } = compare({ ...situation, ...now });
  for (const each of verdicts) {
    if (each.kind === "ask") found.set(each.docId, "the service does not have it");
    if (each.kind === "send-again") found.set(each.docId, "the service has an older version");
  }
  for (const { kind, docIds } of holds)
    for (const docId of docIds)
      found.set(docId, kind === "other-writer" ? "another kbsync wrote it" : "its marker is damaged");
  return found;
}

/**
 * Proves one file: reads and hashes it, and fetches its upload if everything else agrees. `entry` is undefined for a file that is
 * gone. Undefined: it is no file by now, or its document stays without it.
 */
async function proveFile(
  { remote, signal }: ProofContext,
  { root, rules, signature, uploadsMails, why }: Proving,
  differences: ReadonlyMap<string, string>,
  path: RelativePath,
  entry: ScanEntry | undefined,
  row: FileRow | undefined,
): Promise<ProvenFile | undefined> {
  const upload = uploadedHash(row);
  const options = { signal, uploadsMails, uploadedHash: upload };
  const read = entry && (await readDocument(join(root, path), entry, rules, options));
  const document = read?.kind === "document" ? withMarker(read.document, signature) : undefined;
  const { version } = await why(path);
  if (version === null) return undefined;
  const { state, reason } = version;
  const docId = row?.docId ?? null;
  const facts = {
    path,
    docId,
    disk: document?.hash ?? null,
    ledger: row?.hash ?? null,
    service: null,
    state,
  };
  if (state !== "searchable" || row === undefined || docId === null || document === undefined)
    return { ...facts, reason, agrees: null };
  const observed = observe(document, rulesKeyOf(rules), Date.now());
  const isSent =
    hasSameBytes(observed, row) && row.label === observed.label && row.digest === observed.digest;
  const difference = isSent ? differences.get(docId) : "what was sent is not what is on disk";
  if (difference !== undefined) return { ...facts, reason: difference, agrees: false };
  if (upload === undefined || entry === undefined) return { ...facts, reason, agrees: true };
  // A service on this machine shows uploads with its current port.
  const reply = await remote.read(docId, signal);
  const url = (reply.kind === "done" ? reply.value.url : undefined) ?? row.fileUrl ?? "";
  const fetched = remote.hostsFile(url) ? await hashUpload(remote, url, entry.sizeBytes, signal) : undefined;
  if (fetched === undefined) return { ...facts, reason, agrees: null, unproven: "not_fetched" };
  const agrees = fetched === document.hash;
  return { ...facts, service: fetched, reason: agrees ? reason : "the uploaded bytes differ", agrees };
}

/** Failed downloads of one file before it counts as unavailable. */
const TRIES_MAX = 3;

/** Returns the SHA-256 of an uploaded file in hex; undefined if the service does not return one of that size. */
async function hashUpload(
  remote: Pick<Remote, "download">,
  url: string,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (let tries = 1; ; tries += 1) {
    const digest = createHash("sha256");
    const sink = (piece: Buffer): Promise<void> => {
      digest.update(piece);
      return Promise.resolve();
    };
    const reply = await remote.download(url, sizeBytes, sink, signal);
    if (reply.kind === "done") return digest.digest("hex");
    // The gate has waited. A file host that fails on one file repeatedly counts as not returning it.
    if (reply.kind !== "later" || (reply.blame === "request" && tries >= TRIES_MAX)) return undefined;
  }
}
