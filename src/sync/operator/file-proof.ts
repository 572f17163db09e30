import { join } from "node:path";
import { openNumberSet } from "../../lib/number-set.ts";
import { observe } from "../actions/observe.ts";
import { hashUpload } from "../reconcile-service/uploads.ts";
import { readDocument } from "../read/read.ts";
import type { AcknowledgedFile, Drift } from "../ledger/drift/drift.ts";
import type { Observed } from "../ledger/files/observed.ts";
import { rulesKeyOf } from "../pass/rules-key.ts";
import { alterationsOf } from "../plan/audit.ts";
import type { ListedResource, ScanEntry } from "../plan/model.ts";
import type { Rules, WatchedSource } from "../rules/rules.ts";
import { compareWithService, type CompareContext, type Listed } from "../reconcile-service/compare.ts";

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
  /**
   * `waiting`: not sent yet. `leftOut`: not a file for a knowledge base, or refused. `notFetched`: the service does not
   * return the uploaded file; everything else agrees.
   */
  readonly verdict: "agrees" | "differs" | "waiting" | "leftOut" | "notFetched";
  /** Why it does not agree, for a person. */
  readonly reason?: string;
}

/** Dependencies of a proof: the service and the ledger. */
export type ProofContext = CompareContext & { readonly ledger: { readonly drift: Drift } };

/** A source to prove. */
export interface Proving {
  readonly id: number;
  readonly source: WatchedSource;
  /** Maximum lag of the service's list behind its answers. */
  readonly lagMs: number;
  /** Whether mails are uploaded, according to the ledger. */
  readonly uploadsMails: boolean;
  readonly signal: AbortSignal;
}

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

/** Lists a scope at the service. Throws what `compareWithService` throws. */
export async function listContent(
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

/** Proves one file: reads and hashes it, and fetches its upload if everything else agrees. */
export async function proveFile(
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
