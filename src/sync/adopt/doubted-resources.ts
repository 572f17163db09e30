import { acknowledgeCreate, asFound } from "../actions/acknowledge.ts";
import { type ActionContext, type ActionSource, reportCompared } from "../actions/context.ts";
import { storedAs } from "../actions/observe.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Adoption, Settlement } from "../plan/settlement.ts";
import { askTitle } from "../reconcile-service/presence.ts";

/** Decides which of the resources that doubted creates have made stay. */
export interface DoubtedResources {
  /**
   * Decides on what the list shows of doubts. Returns the doubts that may end, and the keys of those with a resource whose fate
   * depends on an answer that is still to come.
   */
  decide(
    doubts: readonly CreateIntent[],
    settlement: Settlement,
    nowMs: number,
  ): Promise<{ readonly safe: readonly CreateIntent[]; readonly undecided: ReadonlySet<string> }>;
  /** Reports whether a decision depends on an answer of this resource. */
  awaits(docId: string): boolean;
  /** When a resource that no list had shown before last turned up. */
  turnedUpMs(): number;
  /** Forgets the resources that were seen: no doubt is left. */
  forget(): void;
}

export interface DoubtedResourcesOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "checkAgain" | "deleteLater">;
  /** The source left the configuration, and all its resources are being deleted. */
  readonly isRemoval: boolean;
  /** Reports whether a file is being read or sent. */
  readonly isBusy: (path: RelativePath) => boolean;
}

/** Opens the decisions on resources of a source's doubts. */
export function openDoubtedResources(options: DoubtedResourcesOptions): DoubtedResources {
  const { context, source, isRemoval } = options;
  const { ledger } = context;
  let turnedUpMs = -Infinity;
  /** The newest activity entry when a possibly surplus resource was first seen. */
  const seenAt = new Map<string, number>();
  /** Resources that have yet to answer before a second one is deleted. */
  let unanswered = new Set<string>();

  /**
   * Decides on a resource that a doubt has made. Returns false while it is unknown which one stays. A resource with
   * neither our description nor what the service made of that in the file's own resource is somebody else's, and is
   * never deleted.
   */
  const decideOn = async (doubt: CreateIntent, found: Adoption): Promise<boolean> => {
    ledger.flush();
    const since = seenAt.get(found.docId) ?? ledger.drift.lastActivity();
    seenAt.set(found.docId, since);
    const own = ownResourceOf(options, doubt);
    const isGone = own === undefined && doubt.docId !== null && ledger.intents.isDeleted(doubt.docId);
    if (isRemoval || isGone) {
      if (found.described) await remove(options, doubt, found.docId);
      return true;
    }
    if (own === undefined || own.docId === null) {
      if (!(await adopt(options, doubt, found))) return false;
      // It is compared with its file again, which may have changed since or be gone.
      source.checkAgain(doubt.path);
      return true;
    }
    if (!found.described && ledger.drift.byDoc(own.docId)?.storedLabel !== found.label) return true;
    // Its answer may come before this is known.
    unanswered.add(own.docId);
    if (!(await hasAnswered(options, { id: own.id, docId: own.docId }, since))) return false;
    unanswered.delete(own.docId);
    ledger.flush();
    // Read again: the confirmed resource must still be the file's.
    if (ownResourceOf(options, doubt)?.docId !== own.docId) return false;
    await remove(options, doubt, found.docId);
    return true;
  };

  return {
    decide: async (doubts, settlement, nowMs) => {
      // A twin whose create is in flight, in whatever source, has a resource that no row owns yet. That must not be
      // mistaken for this one's.
      const inFlight = new Set(ledger.intents.allCreates().map(twinKey));
      const safe = doubts.filter((doubt) => !inFlight.has(twinKey(doubt)));
      const byId = new Map(safe.map((doubt) => [doubt.id, doubt]));
      const undecided = new Set<string>();
      unanswered = new Set();
      for (const found of [...settlement.adopted, ...settlement.extra]) {
        const doubt = byId.get(found.id);
        if (doubt === undefined) continue;
        if (!seenAt.has(found.docId)) turnedUpMs = nowMs;
        if (!(await decideOn(doubt, found))) undecided.add(doubt.key);
      }
      return { safe, undecided };
    },
    turnedUpMs: () => turnedUpMs,
    awaits: (docId) => unanswered.has(docId),
    forget: () => {
      seenAt.clear();
      unanswered.clear();
    },
  };
}

/**
 * Returns the resource of a doubt's file, wherever the file is by now. If another file without a resource has its name, such as an
 * empty one, it returns that: what was made under the name is that file's.
 */
function ownResourceOf(
  { context: { ledger }, source }: DoubtedResourcesOptions,
  { path, docId }: CreateIntent,
): { id: number; docId: string | null; path: string } | undefined {
  const there = ledger.files.living(source.id, path);
  if (there?.docId === null || docId === null) return there;
  return ledger.drift.byDoc(docId) ?? there;
}

/**
 * Reports whether the resource that will stay exists, by its own answer and not by a list: it can be read, or it has
 * answered a change since the other one was seen. Otherwise the file is sent once more, and the check is repeated
 * when that is answered. If the file cannot be sent, only its title is.
 */
async function hasAnswered(
  { context, source, isBusy }: DoubtedResourcesOptions,
  { id, docId }: { readonly id: number; readonly docId: string },
  since: number,
): Promise<boolean> {
  const { ledger, remote } = context;
  const reply = await remote.read(docId, context.signal);
  if (reply.kind === "done" && !reply.value.isDeleted) return true;
  ledger.flush();
  // A service without this addition answers 404, as for any address it does not know.
  if (reply.kind !== "done" && ledger.drift.answeredSince(since, docId)) return true;
  const known = ledger.drift.byDoc(docId);
  // A file that cannot be sent now, or no longer, keeps its resource nevertheless.
  if (known !== undefined && known.state !== "agreed" && known.state !== "unsure")
    return (await askTitle(context, known, context.signal)) === "there";
  let path: string | undefined;
  await ledger.write(() => {
    const row = ledger.files.get(id);
    if (row?.docId !== docId) return;
    // The request in flight is about to be answered. Planning it again would send it under another key, again and
    // again if the service takes longer than the time between two checks.
    if (row.state === "unsure" && isBusy(row.path)) return;
    if (row.state === "agreed") ledger.files.setState(id, "unsure");
    path = row.path;
  });
  if (path !== undefined) source.checkAgain(path);
  return false;
}

/** Returns false if the file received another resource meanwhile. */
async function adopt(
  options: DoubtedResourcesOptions,
  doubt: CreateIntent,
  found: Adoption,
): Promise<boolean> {
  const { context, source } = options;
  const { ledger } = context;
  const { docId, exact, label, warning } = found;
  let isFree = true;
  let isAdopted = false;
  await ledger.write(() => {
    if (!isOpen(options, doubt)) return;
    isFree = (ownResourceOf(options, doubt)?.docId ?? null) === null;
    if (!isFree) return;
    const create = asFound(doubt, found);
    const left = acknowledgeCreate(ledger, create, docId, exact, storedAs(label, doubt.observed));
    if (left === "taken") return;
    isAdopted = true;
    ledger.files.warn(docId, warning);
    if (left !== undefined) source.deleteLater(left);
  });
  if (isAdopted) reportCompared(context, source, doubt.path, docId);
  return isFree;
}

async function remove(
  { context: { ledger, following }, source }: DoubtedResourcesOptions,
  { path }: CreateIntent,
  docId: string,
): Promise<void> {
  await ledger.write(() => {
    // The answer that names it may have come since the list.
    if (ledger.files.ownsDoc(docId) || following.has(docId)) return;
    source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
  });
}

/** A doubt whose resource was just adopted is gone, and its id may be another's. */
function isOpen({ context: { ledger }, source }: DoubtedResourcesOptions, { key }: CreateIntent): boolean {
  return ledger.intents.doubts(source.id).some((each) => each.key === key);
}

/** Returns a key that is equal for creates that the list cannot distinguish. */
export function twinKey({ observed }: CreateIntent): string {
  const { kind, tier, ownerId } = observed.shape;
  const what =
    kind === "file"
      ? ["u", observed.fileUrl ?? ""]
      : ["s", observed.title, observed.fileUrl ?? "", observed.digest];
  return [tier, ownerId, ...what].join("\n");
}
