import { setTimeout as sleep } from "node:timers/promises";
import { acknowledgeCreate } from "./actions/acknowledge.ts";
import type { ActionContext, ActionSource } from "./actions/context.ts";
import { labelOf } from "./actions/observe.ts";
import { digestOf } from "./document/digest.ts";
import type { CreateIntent } from "./ledger/intents.ts";
import { KbsyncError } from "../lib/failure.ts";
import { delayMs } from "./plan/retry.ts";
import { startSettling, type OpenCreate, type Settlement } from "./plan/settlement.ts";
import type { ResourceRecord } from "../wire/resource.ts";
import type { Tier } from "../wire/primitives.ts";

/** Settles the creates of one source whose answer never came. */
export interface Settler {
  /** Settles what a former process left open. To be done before the source's files are compared. */
  recover(): Promise<void>;
  /** Settles one create of this process. Those that come at the same time share one list. */
  settle(intent: CreateIntent): Promise<"adopted" | "absent">;
  /** Looks for extra resources that repeated creates have made, now and once more when none can come any more. */
  checkDoubts(): Promise<void>;
  /** The same, some time later. */
  checkDoubtsIn(ms: number): void;
  stop(): void;
}

export interface SettlerOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "lookAgain" | "deleteLater">;
  /** Ends waiting; requests end by the context's signal. */
  readonly stopped: AbortSignal;
  /** One pass: a list that the service refuses ends it. Otherwise it is asked for again and again. */
  readonly once: boolean;
  readonly onWarning: (error: Error) => void;
  /** A clock that nobody sets. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/** A change of the clocks' difference that is worth a note: the service tells its time in whole seconds. */
const CLOCK_NOTE_MS = 2000;
/** A request that got no answer may be worked on still: the list is asked this long after it. */
const GATHER_MS = 250;
/** While a collection's id is unknown, doubts wait this long for it to be told. */
const NO_ID_MS = 1000;
/**
 * A create makes no resource this long after it was given up any more; it is then looked for a last time. Counted by the
 * timers' clock from when this process first saw the doubt: an intent may be a day older than its last attempt, and the
 * time of day may be set.
 */
const DOUBT_MS = 120_000;
/** One pass ends before that. Passes look for what a create made this long after its intent: longer than a request takes. */
const DOUBT_ONCE_MS = 600_000;

/** Opens the settler of a source. */
export function openSettler({
  context,
  source,
  stopped,
  once,
  onWarning,
  elapsedMs = () => performance.now(),
}: SettlerOptions): Settler {
  const { ledger, remote, collections } = context;
  let waiting: {
    intent: CreateIntent;
    resolve: (how: "adopted" | "absent") => void;
    reject: (error: unknown) => void;
  }[] = [];
  let running = false;
  let doubtTimer: NodeJS.Timeout | undefined;
  /** When doubts were first looked at, by their keys: the ledger gives ids again. */
  let doubtedSinceMs = new Map<string, number>();

  /** As it was when the intents of former processes were written: our clock may have been set since. */
  const offsetBeforeMs = ledger.intents.clockOffset();
  let notedOffsetMs = offsetBeforeMs;
  /** The service's clock minus ours, the least that may hold: what is too old for one of the two may be ours all the same. */
  const clockOffset = (nowMs: number): number => {
    if (Math.abs(nowMs - (notedOffsetMs ?? Infinity)) > CLOCK_NOTE_MS) {
      notedOffsetMs = nowMs;
      ledger.note(() => ledger.intents.setClockOffset(nowMs));
    }
    return Math.min(nowMs, offsetBeforeMs ?? nowMs);
  };

  /** Lists what the creates may have made, until the service has answered; undefined if a collection's id is unknown. */
  const compare = async (creates: readonly CreateIntent[]): Promise<Settlement | undefined> => {
    const places = Map.groupBy(
      creates,
      ({ observed }) => `${observed.shape.tier}\n${observed.shape.ownerId}`,
    );
    const settlements: Settlement[] = [];
    for (const group of places.values()) {
      const shape = group[0]?.observed.shape;
      const settlement = shape && (await compareIn(shape.tier, shape.ownerId, group));
      if (settlement === undefined) return undefined;
      settlements.push(settlement);
    }
    return {
      adopted: settlements.flatMap(({ adopted }) => adopted),
      extra: settlements.flatMap(({ extra }) => extra),
      absent: settlements.flatMap(({ absent }) => absent),
    };
  };

  const compareIn = async (
    tier: Tier,
    ownerId: string,
    creates: readonly CreateIntent[],
  ): Promise<Settlement | undefined> => {
    for (let failures = 1; ; failures += 1) {
      stopped.throwIfAborted();
      const collectionId = collections.id(tier) ?? (await collections.ask(tier, context.signal));
      if (collectionId === undefined) return undefined;
      const settling = startSettling(creates.map(openCreateOf), (docId) => ledger.files.ownsDoc(docId));
      const see = (record: ResourceRecord): void => {
        const url = record.url ?? undefined;
        if (record.isDeleted || !settling.interested({ url, title: record.title })) return;
        const createdMs = Date.parse(record.createdAt ?? "");
        settling.see({
          docId: record._id,
          createdMs: Number.isNaN(createdMs) ? undefined : createdMs,
          url,
          title: record.title,
          digest: url === undefined ? digestOf(record.content ?? "") : "",
          label: labelOf(record.title, record.description),
        });
      };
      const reply = await remote.list({ collectionId, ownerId }, see, context.signal);
      ledger.flush();
      if (reply.kind === "done") return settling.finish(clockOffset(reply.value.clockOffsetMs));
      if (reply.kind === "gone" && !collections.isConfigured(tier)) {
        // A collection that the service does not know any more holds nothing, unless it has another id by now.
        if ((await collections.renew(tier, context.signal)) === collectionId) return settling.finish(0);
        continue;
      }
      // Nothing may be sent before this is known, so it is asked for as long as it takes; the gate waits after a `later`.
      if (reply.kind === "later") continue;
      const error = listRefused(collectionId, reply.kind === "gone" ? "not found" : reply.message);
      if (once) throw error;
      if (failures === 1) onWarning(error);
      await sleep(delayMs(failures, undefined, context.random()), undefined, { signal: stopped });
    }
  };

  /** Writes down what was found. */
  const apply = async (creates: readonly CreateIntent[], settlement: Settlement): Promise<void> => {
    const byId = new Map(creates.map((create) => [create.id, create]));
    await ledger.write(() => {
      for (const { id, docId, exact } of settlement.adopted) {
        const intent = byId.get(id);
        if (intent === undefined) continue;
        const left = acknowledgeCreate(ledger, intent, docId, exact);
        if (left === "taken") throw new Error(`the resource ${docId} was adopted twice`);
        if (left !== undefined) source.deleteLater(left);
        if (!exact) source.lookAgain(intent.path);
      }
      for (const { id, docId } of settlement.extra) {
        const path = byId.get(id)?.path ?? "";
        source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
      }
    });
  };

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await sleep(GATHER_MS, undefined, { signal: stopped });
      const group = waiting;
      waiting = [];
      try {
        const creates = group.map(({ intent }) => intent);
        const settlement = await compare(creates);
        if (settlement !== undefined) await apply(creates, settlement);
        const adopted = new Set(settlement?.adopted.map(({ id }) => id));
        for (const { intent, resolve } of group) resolve(adopted.has(intent.id) ? "adopted" : "absent");
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
  };

  const checkDoubts = async (): Promise<void> => {
    clearTimeout(doubtTimer);
    ledger.flush();
    const doubts = ledger.intents.doubts(source.id);
    if (doubts.length === 0) return;
    const nowMs = elapsedMs();
    doubtedSinceMs = new Map(doubts.map(({ key }) => [key, doubtedSinceMs.get(key) ?? nowMs]));
    const startedMs = context.now();
    const settlement = await compare(doubts);
    if (settlement === undefined) {
      checkLater(NO_ID_MS);
      return;
    }
    // A twin whose create is on its way, of whatever source, has a resource that no row owns yet, which must not be taken for that.
    const travelling = new Set(ledger.intents.allCreates().map(twinKey));
    const isSafe = ({ id }: { id: number }): boolean =>
      doubts.some((doubt) => doubt.id === id && !travelling.has(twinKey(doubt)));
    // A file that failed or waits without a resource has one after all. If it has none for another reason, the plan makes
    // it one; whatever else there is is extra.
    const isWanting = ({ id }: { id: number }): boolean => {
      const path = doubts.find((doubt) => doubt.id === id)?.path;
      const row = path === undefined ? undefined : ledger.files.living(source.id, path);
      return row !== undefined && row.docId === null && (row.state === "parked" || row.state === "failed");
    };
    const { yes: adopted = [], no: others = [] } = Object.groupBy(settlement.adopted.filter(isSafe), (each) =>
      isWanting(each) ? "yes" : "no",
    );
    await apply(doubts, { adopted, extra: [...settlement.extra.filter(isSafe), ...others], absent: [] });
    // It is compared with its file again, which may have changed since.
    for (const { id } of adopted) source.lookAgain(doubts.find((doubt) => doubt.id === id)?.path ?? "");
    const isOver = ({ key, atMs }: CreateIntent): boolean =>
      once ? startedMs - atMs >= DOUBT_ONCE_MS : nowMs - (doubtedSinceMs.get(key) ?? nowMs) >= DOUBT_MS;
    const over = doubts.filter((doubt) => isOver(doubt) && isSafe(doubt));
    await ledger.write(() => {
      for (const { id } of over) ledger.intents.remove(id);
    });
    if (over.length < doubts.length) checkLater(DOUBT_MS / 4);
  };
  const checkLater = (ms: number): void => {
    clearTimeout(doubtTimer);
    if (stopped.aborted) return;
    doubtTimer = setTimeout(() => {
      checkDoubts().catch(() => undefined); // Ended by the stop; the doubts are in the ledger.
    }, ms);
    doubtTimer.unref();
  };

  return {
    recover: async () => {
      const creates = ledger.intents.creates(source.id);
      if (creates.length > 0) {
        const settlement = await compare(creates);
        if (settlement !== undefined) await apply(creates, settlement);
        const adopted = new Set(settlement?.adopted.map(({ id }) => id));
        // What the list does not show may yet appear, and without a collection's id there is no list at all.
        await ledger.write(() => {
          for (const { id } of creates) if (!adopted.has(id)) ledger.intents.doubt(id, null);
        });
      }
      if (ledger.intents.doubts(source.id).length > 0) await checkDoubts();
    },
    settle: (intent) =>
      new Promise((resolve, reject) => {
        waiting.push({ intent, resolve, reject });
        if (running) return;
        running = true;
        run()
          .catch((error: unknown) => {
            for (const each of waiting) each.reject(error);
            waiting = [];
          })
          .finally(() => {
            running = false;
          });
      }),
    checkDoubts,
    checkDoubtsIn: checkLater,
    stop: () => clearTimeout(doubtTimer),
  };
}

function listRefused(collectionId: string, words: string): KbsyncError {
  return new KbsyncError(`the service refuses to list the collection ${collectionId}: ${words}`, {
    code: "list_refused",
    subject: collectionId,
    retryable: true,
    hint: "what became of files that were being sent cannot be known without it, so nothing is sent",
  });
}

/** Creates with one key cannot be told apart in the list. */
function twinKey({ observed }: CreateIntent): string {
  const { kind, tier, ownerId } = observed.shape;
  const what =
    kind === "file"
      ? ["u", observed.fileUrl ?? ""]
      : ["s", observed.title, observed.fileUrl ?? "", observed.digest];
  return [tier, ownerId, ...what].join("\n");
}

function openCreateOf(intent: CreateIntent): OpenCreate {
  const { observed } = intent;
  return {
    id: intent.id,
    atMs: intent.atMs,
    attempts: intent.attempts,
    answered: intent.docId !== null,
    url: observed.fileUrl,
    unique: observed.shape.kind === "file",
    title: observed.title,
    digest: observed.digest,
    label: observed.label,
  };
}
