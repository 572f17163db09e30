import { openShares } from "../../lib/shares.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";

/**
 * Documents taken in at once, beside those that wait for a process or a model. What is heavy about it has bounds of its own,
 * and more in flight share their transactions; but each may hold a text of 32 MB.
 */
const WIDTH = 32;
/**
 * Documents that wait for a process or a model and hold no slot meanwhile: hundreds of scans wait for hours. The line of the
 * processes has room for 1000: these, and requests.
 */
export const WAITING_MAX = 900;
/** Characters of their texts in memory meanwhile: a book of which one page is a picture has a million. */
const WAITING_CHARS_MAX = 32 * 1024 * 1024;

/** The slot of one document. */
export interface JobSlot {
  /** Gives the slot to others meanwhile, unless too many documents wait already. It comes back at once, even where all are taken. */
  readonly whileWaiting: WhileWaiting;
  isWaiting(): boolean;
  /** How long the slot was held, waits left out. */
  heldMs(): number;
  leave(): void;
}

/** Slots of documents that are taken in. No account can take all of them, nor all that may wait (`openShares`). */
export interface JobSlots {
  isFull(): boolean;
  /** Undefined: there is none for this account now. */
  take(accountId: string): JobSlot | undefined;
}

/** `onFree` is called whenever a document begins to wait. */
export function openJobSlots(onFree: () => void, nowMs = (): number => performance.now()): JobSlots {
  const active = openShares(WIDTH);
  const waiting = openShares(WAITING_MAX);
  const waitingChars = openShares(WAITING_CHARS_MAX);

  const open = (account: string): JobSlot => {
    let fromMs = nowMs();
    let heldMs = 0;
    let waits = false;
    const beginWait = (chars: number): boolean => {
      if (waits || !waiting.take(account, 1)) return false;
      if (!waitingChars.take(account, chars)) {
        waiting.give(account, 1);
        return false;
      }
      waits = true;
      heldMs += nowMs() - fromMs;
      active.give(account, 1);
      onFree();
      return true;
    };
    const endWait = (chars: number): void => {
      waiting.give(account, 1);
      waitingChars.give(account, chars);
      // Documents come back one after another, and none begins before that many have ended.
      active.force(account, 1);
      fromMs = nowMs();
      waits = false;
    };
    return {
      isWaiting: () => waits,
      heldMs: () => heldMs + (waits ? 0 : nowMs() - fromMs),
      leave: () => active.give(account, 1),
      whileWaiting: async (work, chars) => {
        if (!beginWait(chars)) return await work();
        try {
          return await work();
        } finally {
          endWait(chars);
        }
      },
    };
  };
  return {
    isFull: () => active.held() >= WIDTH,
    take: (account) => (active.take(account, 1) ? open(account) : undefined),
  };
}
