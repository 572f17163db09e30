import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { UserMetadata } from "../../wire/metadata.ts";
import { isMail, kindOfName } from "../../formats/kinds.ts";
import type { SourceDocument } from "../scan/read/outcome.ts";
import type { Observed } from "../ledger/files/observed.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { decide, uploadedHash } from "../plan/decide.ts";
import { hasSameBytes, sentWith } from "../plan/versions.ts";
import { racyUntilMs } from "../plan/file-times.ts";
import { type ActionKind, EMPTY_FILE, type LedgerFile, type Candidate } from "../plan/model.ts";
import { isBlank } from "../plan/reconcile.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { metadataOf, observe, withMarker } from "./observe.ts";
import { giveUp, park, type Reporting } from "./trouble.ts";
import { codeWords } from "../../lib/system-error.ts";

/** A file that was read and whose change must be sent. It leaves once its intent is durable. */
export interface Outgoing {
  readonly action: Exclude<ActionKind, "delete" | "touch">;
  readonly candidate: Candidate;
  readonly document: SourceDocument;
  /** Absent if the service takes none. */
  readonly metadata?: UserMetadata | undefined;
  readonly observed: Observed;
  /** The row, if the file has a resource already. */
  readonly row: LedgerFile | undefined;
  readonly startedMs: number;
  /** The intent of a create or replace. */
  readonly intent: CreateIntent | undefined;
}

/** A file that was read, with its decision. `write` records its intent and returns what must be sent then. */
export interface Prepared {
  readonly bytes: number;
  /** Runs inside the transaction that makes the intent durable. */
  write(): Outgoing;
}

type RuledSource = Pick<ActionSource, "id" | "rulesKey">;

/**
 * Reads a file and decides. What needs no request is recorded in the ledger at once. Returns undefined in that case,
 * and if the file could not be read.
 */
export async function prepareFile(
  context: ActionContext,
  source: ActionSource,
  candidate: Candidate,
): Promise<Prepared | undefined> {
  const { ledger } = context;
  const startedMs = context.now();
  const readAtMs = Date.now();
  const read = await readAgain(context, source, candidate, readAtMs);
  if (read === undefined) return undefined;
  const document = withMarker(read.document, source.signature);
  if (document.entry.sizeBytes === 0 && candidate.entry.sizeBytes > 0) {
    // Emptied since the check, perhaps to be rewritten.
    source.agenda.checkTorn(candidate.entry.path);
    return undefined;
  }
  const row = candidate.known === undefined ? undefined : ledger.files.get(candidate.known.id);
  if (isBlank(document.entry, row)) {
    noteUnsent(context, source, { ...candidate, entry: document.entry }, "skipped", EMPTY_FILE);
    return undefined;
  }
  const metadata = context.capabilities.takesMetadata() ? metadataOf(document, source.rules) : undefined;
  const observed = observe(document, source.rulesKey(candidate.entry.path), readAtMs, metadata);
  const action = decide(observed, row, candidate.from !== undefined);
  const owned = row?.docId ?? undefined;
  if (action === "touch" && row !== undefined && owned !== undefined) {
    ledger.note(() =>
      ledger.files.agree(row.id, owned, { ...observed, fileUrl: row.fileUrl ?? observed.fileUrl }),
    );
    return undefined;
  }
  if (action === "touch") throw new Error("a file without a resource needs no touch");
  const isTextSent = row?.state !== "agreed" || !hasSameBytes(observed, row);
  if (isTextSent && !(await mayLeave(context, source, candidate, read.document, metadata))) return undefined;
  return {
    bytes: document.kind === "content" ? document.sizeBytes : 0,
    write: () => {
      const outgoing = { action, candidate, document, metadata, observed, row, startedMs };
      if (action !== "create" && action !== "replace") {
        if (row !== undefined) {
          ledger.files.depart(row.id, sentWith(row, { ...observed, path: candidate.entry.path }));
        }
        return { ...outgoing, intent: undefined };
      }
      const revived = ledger.intents.revive(source.id, observed);
      if (revived !== undefined) return { ...outgoing, intent: revived };
      const key = randomUUID();
      const id = ledger.intents.create(source.id, key, startedMs, observed);
      const { path } = candidate.entry;
      const sent = { attempts: 1, docId: null, observed };
      const fresh = { id, source: source.id, path, key, atMs: startedMs, ...sent };
      return { ...outgoing, intent: fresh };
    },
  };
}

/** Checks a document for secrets. Records in the ledger why it must not be sent. */
async function mayLeave(
  context: ActionContext,
  source: ActionSource,
  candidate: Candidate,
  document: SourceDocument,
  metadata: UserMetadata | undefined,
): Promise<boolean> {
  const objection = await context.secretCheck?.(document, source.rules, metadata);
  if (objection === undefined) return true;
  const rest = hasResource(candidate) ? "; the service still has the version before" : "";
  giveUp(context, source, unsentOf(context, source, candidate), {
    state: "failed",
    code: "secret",
    message: `${objection}${rest}`,
  });
  return false;
}

/** Reads the file. Records in the ledger why it could not be read. */
async function readAgain(
  context: ActionContext,
  source: ActionSource,
  candidate: Candidate,
  readAtMs: number,
): Promise<{ document: SourceDocument } | undefined> {
  const { entry } = candidate;
  const { signal, capabilities } = context;
  if (isMail(kindOfName(entry.path))) await capabilities.check(signal);
  const outcome = await context.read(join(source.root, entry.path), entry, source.rules, {
    signal,
    uploadsMails: capabilities.readsMails(),
    uploadedHash: uploadedHash(candidate.known && context.ledger.files.get(candidate.known.id)),
  });
  const racyMs = racyUntilMs(outcome.kind === "document" ? outcome.document.entry : entry, readAtMs);
  if (racyMs !== undefined)
    source.agenda.rereadAt(entry.path, context.now() + Math.max(0, racyMs - Date.now()));
  const judged = racyMs === undefined ? source : { id: source.id, rulesKey: () => 0 };
  switch (outcome.kind) {
    case "document":
      return outcome;
    case "torn":
    // A file system may list a file that it does not open. Its reads have the same limit as those of one that never rests.
    case "gone":
      source.agenda.checkTorn(entry.path);
      return undefined;
    case "skipped":
      // A person must decide about this, so its resource stays as long as a file of that name exists.
      noteUnsent(context, judged, candidate, hasResource(candidate) ? "failed" : "skipped", outcome.reason);
      return undefined;
    case "refused":
      noteUnsent(context, judged, candidate, "failed", outcome.reason);
      return undefined;
    case "unreadable": {
      const message = `cannot be read: ${codeWords(outcome.code)}`;
      park(context, source, unsentOf(context, source, candidate), { code: outcome.code, message });
      return undefined;
    }
  }
}

function hasResource({ known }: Candidate): boolean {
  return known !== undefined && known.docId !== null;
}

/**
 * Records a file that is not sent, with the reason, so that it is not read again until it changes. `failed`: it cannot become
 * a resource, and its old one stays. `skipped`: it has none, and need not be sent.
 */
export function noteUnsent(
  context: Reporting,
  source: RuledSource,
  candidate: Candidate,
  state: "failed" | "skipped",
  reason: string,
): void {
  const code = state === "failed" ? "not_accepted" : state;
  giveUp(context, source, unsentOf(context, source, candidate), { state, code, message: reason });
}

function unsentOf(
  { ledger, now }: Reporting,
  { rulesKey }: RuledSource,
  candidate: Candidate,
): Parameters<typeof giveUp>[2] {
  const { entry, known } = candidate;
  return {
    candidate,
    entry,
    rulesKey: rulesKey(entry.path),
    // An interrupted update leaves open what the service has.
    isSure: known === undefined || ledger.files.get(known.id)?.state !== "unsure",
    action: "read",
    startedMs: now(),
  };
}
