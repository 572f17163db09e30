import { openShares } from "../../lib/shares.ts";
import type { WaitKind, WhileWaiting } from "../ingest/extract/extract.ts";

/**
 * Documents ingested at once, not counting those that wait for a process or a model. The expensive steps have bounds of their
 * own, and more documents in flight share transactions; but each may hold a text of 32 MB.
 */
const WIDTH = 32;
/**
 * Documents that wait for a process or a model without a slot: hundreds of scans wait for hours. The queue of the processes
 * holds 1000: these, and requests. As many of each kind may wait, so that scans delay no others.
 */
export const WAITING_MAX = 900;
/** Characters of waiting documents' texts in memory: a book of which one page is a picture has a million. */
const WAITING_CHARS_MAX = 32 * 1024 * 1024;
/** Documents that keep their slots while they wait, because their texts exceed `WAITING_CHARS_MAX`. */
const KEEPING_SLOT_MAX = 16;

/** The slots that a waiting document lacks, and needs before it restarts. */
export interface WaitReservation {
  readonly kind: WaitKind;
  /** Whether it keeps its slot while it waits. */
  readonly keepsSlot: boolean;
}

/** Names a reservation in the line of a job (`ingestLine`), so that every process knows it. */
export function needName({ kind, keepsSlot }: WaitReservation): string {
  return keepsSlot ? `${kind}+slot` : kind;
}

/** Reverses `needName`. Undefined: the job has not waited yet. */
export function reservationOf(need: string): WaitReservation | undefined {
  if (need === "") return undefined;
  const kind = (["read", "file"] as const).find((each) => need.startsWith(each)) ?? "text";
  return { kind, keepsSlot: need.endsWith("+slot") };
}

/** No more documents of the account may wait. This one restarts when it may. */
export class WaitLimitReached extends Error {
  readonly reservation: WaitReservation;
  constructor(reservation: WaitReservation) {
    super("too many documents of the account wait already");
    this.reservation = reservation;
  }
}

/** The slot of one document. */
export interface JobSlot {
  /**
   * Runs work while others use the slot. The slot returns at once afterwards, even if all are taken. Rejects with
   * `WaitLimitReached`, without running the work, if too many documents of the account wait.
   */
  readonly whileWaiting: WhileWaiting;
  isWaiting(): boolean;
  /** How long the slot was held, without the waits. */
  heldMs(): number;
  leave(): void;
}

/** Slots of documents in ingestion. No account can take all slots, nor all of the capacity to wait (`openShares`). */
export interface JobSlots {
  isFull(): boolean;
  /** Undefined: there is no slot for this account now, or the reservation cannot be made. */
  take(account: string, reservation?: WaitReservation): JobSlot | undefined;
}

/** Opens the slots. Calls `onFree` whenever a document starts to wait. */
export function openJobSlots(onFree: () => void, nowMs = (): number => performance.now()): JobSlots {
  const active = openShares(WIDTH);
  const keepingSlot = openShares(KEEPING_SLOT_MAX);
  const openWaiting = () => ({ documents: openShares(WAITING_MAX), chars: openShares(WAITING_CHARS_MAX) });
  const waiting = { read: openWaiting(), file: openWaiting(), text: openWaiting() };

  const open = (account: string, reservation: WaitReservation | undefined): JobSlot => {
    let fromMs = nowMs();
    let heldMs = 0;
    let isWaiting = false;
    // These last until the document leaves: one that has waited once may always wait again. Only `read` gives way to another kind.
    let kind = reservation?.kind;
    let keepsSlot = reservation?.keepsSlot === true;
    let heldChars = 0;

    /** Reports whether the slot is free during the wait. */
    const beginWait = (chars: number, wanted: WaitKind): boolean => {
      if (isWaiting) return false;
      if (kind === undefined || (kind === "read" && wanted !== "read")) {
        if (!waiting[wanted].documents.take(account, 1))
          throw new WaitLimitReached({ kind: wanted, keepsSlot });
        endReservation();
        kind = wanted;
      }
      const more = Math.max(0, chars - heldChars);
      if (more > 0 && !waiting[kind].chars.take(account, more)) {
        keepsSlot ||= keepingSlot.take(account, 1);
        if (!keepsSlot) throw new WaitLimitReached({ kind, keepsSlot: true });
        return false;
      }
      heldChars += more;
      isWaiting = true;
      heldMs += nowMs() - fromMs;
      active.give(account, 1);
      onFree();
      return true;
    };
    const endReservation = (): void => {
      if (kind === undefined) return;
      waiting[kind].documents.give(account, 1);
      waiting[kind].chars.give(account, heldChars);
      heldChars = 0;
    };
    const endWait = (): void => {
      // The count may exceed the width: documents return one after another, and none starts until enough have ended.
      active.force(account, 1);
      fromMs = nowMs();
      isWaiting = false;
    };
    return {
      isWaiting: () => isWaiting,
      heldMs: () => heldMs + (isWaiting ? 0 : nowMs() - fromMs),
      leave: () => {
        active.give(account, 1);
        if (keepsSlot) keepingSlot.give(account, 1);
        endReservation();
      },
      whileWaiting: async (work, chars, wanted = chars === 0 ? "file" : "text") => {
        if (!beginWait(chars, wanted)) return await work();
        try {
          return await work();
        } finally {
          endWait();
        }
      },
    };
  };

  const reserve = (account: string, { kind, keepsSlot }: WaitReservation): boolean => {
    const { documents } = waiting[kind];
    if (!documents.take(account, 1)) return false;
    if (!keepsSlot || keepingSlot.take(account, 1)) return true;
    documents.give(account, 1);
    return false;
  };
  return {
    isFull: () => active.held() >= WIDTH,
    take: (account, reservation) => {
      if (!active.take(account, 1)) return undefined;
      if (reservation === undefined || reserve(account, reservation)) return open(account, reservation);
      active.give(account, 1);
      return undefined;
    },
  };
}
