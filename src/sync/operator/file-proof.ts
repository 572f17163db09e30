import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Explanation } from "../../wire/daemon-files.ts";
import type { VersionState } from "../../wire/file-state.ts";
import { openNumberSet } from "../../lib/number-set.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import { observe, withMarker } from "../actions/observe.ts";
import type { ActionContext } from "../actions/context.ts";
import { readDocument } from "../read/read.ts";
import type { AcknowledgedFile, Drift, Scope } from "../ledger/drift/drift.ts";
import type { Observed } from "../ledger/files/observed.ts";
import { rulesKeyOf } from "../pass/rules-key.ts";
import { type ListContext, readList } from "../identity/list.ts";
import { resourceOf } from "../identity/resource.ts";
import { alterationsOf } from "../plan/alterations.ts";
import { hasSameBytes } from "../plan/versions.ts";
import type { Signature } from "../plan/marker.ts";
import type { ListedResource, RelativePath, ScanEntry } from "../plan/model.ts";
import type { Rules, WatchedSource } from "../rules/rules.ts";

/** One file on disk, in the ledger and at the service. */
export interface ProvenFile {
  readonly path: string;
  readonly docId: string | null;
  /** SHA-256 of the bytes on disk, read for this proof, hex; null if there is no file or it cannot be read. */
  readonly disk: string | null;
  /** SHA-256 of the bytes that the service acknowledged, according to the ledger. */
  readonly ledger: string | null;
  /**
   * The service's content: the digest of a text, the SHA-256 of an uploaded file's bytes, fetched for this proof, or the
   * address of a link. Null if it has nothing.
   */
  readonly service: string | null;
  /** The expected content, in the same form. */
  readonly expected: string | null;
  /** State of the newest version, and why, as everywhere. */
  readonly state: VersionState;
  readonly reason: string;
  /** Of a searchable file, whether the service has what is on disk; null: another state, or `unproven` says why not. */
  readonly agrees: boolean | null;
  /**
   * `not_fetched`: the service does not return the uploaded file. `own_form`: it keeps the text in a form of its own. `too_new`: it
   * differs, but its list may be older than the file's last change.
   */
  readonly unproven?: "not_fetched" | "own_form" | "too_new";
}

/** Dependencies of a proof: the service and the ledger. */
export type ProofContext = ListContext & { readonly ledger: { readonly drift: Drift } };

/** A source to prove. */
export interface Proving {
  readonly id: number;
  readonly source: WatchedSource;
  /** Maximum lag of the service's list behind its answers. */
  readonly lagMs: number;
  /** As in the markers that were sent. */
  readonly signature: Signature;
  /** Explains a file, by the running daemon or by the ledger. */
  readonly why: (path: RelativePath) => Promise<Explanation>;
  /** Whether mails are uploaded, according to the ledger. */
  readonly uploadsMails: boolean;
  readonly signal: AbortSignal;
}

/** The service's list, by rows. */
interface ServiceContent {
  /** The listed resource: as acknowledged, in a form of the service's own, different, or missing. */
  resource(row: AcknowledgedFile): "as acknowledged" | ListedAs | undefined;
  /** Digest of the text, or the address; null if there is none. */
  of(row: AcknowledgedFile): string | null;
  /** Current address of an uploaded file at the service. */
  addressOf(row: AcknowledgedFile): string | undefined;
  readonly unowned: number;
}

/** A resource that is not listed as it was sent. */
interface ListedAs extends Pick<ListedResource, "digest" | "url"> {
  readonly isOwnForm: boolean;
}

/** Lists a scope at the service. Throws what `readList` throws. */
export async function listContent(context: ProofContext, scope: Scope): Promise<ServiceContent> {
  let sound = openNumberSet();
  let others = new Map<number, ListedAs>();
  let addresses = new Map<number, string>();
  let unowned = 0;
  const visit = (record: ResourceRecord): void => {
    const row = context.ledger.drift.ownerOf(record._id);
    if (row === undefined || typeof row === "string") {
      unowned += 1;
      return;
    }
    const resource = resourceOf(record);
    const { digest, url } = resource;
    const isAltered = (stored: string | null): boolean =>
      alterationsOf({ ...row, state: "agreed", storedDigest: stored }, resource).length > 0;
    if (!isAltered(null)) sound.add(row.id);
    else others.set(row.id, { digest, url, isOwnForm: !isAltered(row.storedDigest) });
    // A service on this machine lists them with its current port.
    if (row.kind === "file" && url !== undefined && url !== row.fileUrl) addresses.set(row.id, url);
  };
  await readList(context, scope, () => {
    [sound, others, addresses, unowned] = [openNumberSet(), new Map(), new Map(), 0];
    return visit;
  });
  const resource: ServiceContent["resource"] = (row) =>
    sound.has(row.id) ? "as acknowledged" : others.get(row.id);
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

/**
 * Proves one file: reads and hashes it, and fetches its upload if everything else agrees. `entry` is undefined for a file that is
 * gone. Undefined: it is no file by now, or its document stays without it.
 */
export async function proveFile(
  { remote }: ProofContext,
  content: ServiceContent,
  { rules, signature, why, uploadsMails, signal }: Proving & { readonly rules: Rules },
  {
    path,
    entry,
    row,
  }: {
    readonly path: RelativePath;
    readonly entry: ScanEntry | undefined;
    readonly row: AcknowledgedFile | undefined;
  },
): Promise<ProvenFile | undefined> {
  const read =
    entry &&
    (await readDocument(join(rules.source.absolutePath, path), entry, rules, {
      signal,
      uploadsMails,
      uploadedHash: row?.state === "agreed" && row.kind === "file" ? row.hash : undefined,
    }));
  const observed =
    read?.kind === "document"
      ? observe(withMarker(read.document, signature), rulesKeyOf(rules), Date.now())
      : undefined;
  const disk = observed?.hash ?? null;
  const facts = {
    path,
    docId: row?.docId ?? null,
    disk,
    ledger: row?.hash ?? null,
    service: row === undefined ? null : content.of(row),
    expected: observed === undefined ? null : expectedOf(observed),
  };
  const { version } = await why(path);
  if (version === null) return undefined;
  const { state, reason } = version;
  if (state !== "searchable" || row === undefined || observed === undefined)
    return { ...facts, state, reason, agrees: null };
  const judgement = judgeListed(row, observed, content);
  if (judgement !== undefined) return { ...facts, state, reason, ...judgement };
  const address = content.addressOf(row);
  const fetched =
    address !== undefined && entry !== undefined && remote.hostsFile(address)
      ? await hashUpload(remote, address, entry.sizeBytes, signal)
      : undefined;
  return { ...facts, service: fetched ?? null, state, reason, ...judgeUpload(fetched, disk) };
}

/** What the service should have of a file, in the form in which its list shows it. */
function expectedOf({ shape, digest, fileUrl, hash }: Observed): string | null {
  if (shape.kind === "content") return digest;
  return shape.kind === "link" ? (fileUrl ?? null) : hash;
}

type Judgement = Pick<ProvenFile, "agrees" | "unproven"> & { readonly reason?: string };

/** Judges a searchable file by its row and the listed resource. Undefined for an upload that agrees so far: its bytes decide. */
function judgeListed(
  row: AcknowledgedFile,
  observed: Observed,
  content: ServiceContent,
): Judgement | undefined {
  const listed = content.resource(row);
  if (listed === undefined) return { agrees: false, reason: "the service does not have it" };
  if (!hasSameBytes(observed, row) || row.label !== observed.label || row.digest !== observed.digest)
    return { agrees: false, reason: "what was sent is not what is on disk" };
  if (listed === "as acknowledged") return row.kind === "file" ? undefined : { agrees: true };
  return listed.isOwnForm
    ? { agrees: null, unproven: "own_form" }
    : {
        agrees: false,
        reason: "the service has another text, title, description, address or metadata",
      };
}

/** Judges an upload by the hash of its fetched bytes; undefined if the service did not return them. */
function judgeUpload(fetched: string | undefined, disk: string | null): Judgement {
  if (fetched === undefined) return { agrees: null, unproven: "not_fetched" };
  return fetched === disk ? { agrees: true } : { agrees: false, reason: "the uploaded bytes differ" };
}

/** Returns the SHA-256 of an uploaded file in hex; undefined if the service does not return one of that size. */
async function hashUpload(
  remote: Pick<ActionContext["remote"], "download">,
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

/** Failed downloads of one file before it counts as unavailable. */
const TRIES_MAX = 3;
