import { openShares } from "../../lib/shares.ts";
import type { WhileWaiting } from "../ingest/extract/extract.ts";

/**
 * Documents taken in at once, beside those that wait for a process or a model. What is heavy about it has bounds of its own,
 * and more in flight share their transactions; but each may hold a text of 32 MB.
 */
const WIDTH = 32;
/**
 * Documents that wait for a process or a model and hold no slot meanwhile: hundreds of scans wait for hours. The line of the
 * processes has room for 1000: these, and requests. As many again that have their text, which scans never hold up.
 */
export const WAITING_MAX = 900;
/** Characters of their texts in memory meanwhile: a book of which one page is a picture has a million. */
const WAITING_CHARS_MAX = 32 * 1024 * 1024;
/** Documents that keep their slots as they wait, for their texts are more than may be in memory without. */
const KEEPING_MAX = 16;

/** What a document that begins waits for first: `file` before it has its text, as a scan does, `text` for a model. */
type WaitKind = "file" | "text";

/** What a document lacked to wait, and has to have before it begins anew. */
export interface WaitNeed {
  readonly kind: WaitKind;
  /** It keeps its slot. */
  readonly keepsSlot: boolean;
}

/** No more documents of the account may wait: this one begins anew when it may. */
export class NoPlaceToWait extends Error {
  readonly need: WaitNeed;
  constructor(need: WaitNeed) {
    super("too many documents of the account wait already");
    this.need = need;
  }
}

/** The slot of one document. */
export interface JobSlot {
  /**
   * Gives the slot to others meanwhile. It comes back at once, even where all are taken. Rejects with `NoPlaceToWait`, and does
   * nothing, where too many of the account wait.
   */
  readonly whileWaiting: WhileWaiting;
  isWaiting(): boolean;
  /** How long the slot was held, waits left out. */
  heldMs(): number;
  leave(): void;
}

/** Slots of documents that are taken in. No account can take all of them, nor all that may wait (`openShares`). */
export interface JobSlots {
  isFull(): boolean;
  /** Undefined: there is none for this account now, or nothing of what the document needs to wait. */
  take(account: string, need?: WaitNeed): JobSlot | undefined;
}

/** `onFree` is called whenever a document begins to wait. */
export function openJobSlots(onFree: () => void, nowMs = (): number => performance.now()): JobSlots {
  const active = openShares(WIDTH);
  const keeping = openShares(KEEPING_MAX);
  const openRoom = () => ({ places: openShares(WAITING_MAX), chars: openShares(WAITING_CHARS_MAX) });
  const rooms = { file: openRoom(), text: openRoom() };

  const open = (account: string, need: WaitNeed | undefined): JobSlot => {
    let fromMs = nowMs();
    let heldMs = 0;
    let waits = false;
    // Kept until the end: a document that waited once never finds that it may not wait again.
    let kind = need?.kind;
    let hasPlace = need !== undefined;
    let keepsSlot = need?.keepsSlot === true;
    let heldChars = 0;

    /** Whether the slot is free meanwhile. */
    const beginWait = (chars: number): boolean => {
      if (waits) return false;
      kind ??= chars === 0 ? "file" : "text";
      const room = rooms[kind];
      hasPlace ||= room.places.take(account, 1);
      if (!hasPlace) throw new NoPlaceToWait({ kind, keepsSlot });
      const more = Math.max(0, chars - heldChars);
      if (more > 0 && !room.chars.take(account, more)) {
        keepsSlot ||= keeping.take(account, 1);
        if (!keepsSlot) throw new NoPlaceToWait({ kind, keepsSlot: true });
        return false;
      }
      heldChars += more;
      waits = true;
      heldMs += nowMs() - fromMs;
      active.give(account, 1);
      onFree();
      return true;
    };
    const endWait = (): void => {
      // Documents come back one after another, and none begins before that many have ended.
      active.force(account, 1);
      fromMs = nowMs();
      waits = false;
    };
    return {
      isWaiting: () => waits,
      heldMs: () => heldMs + (waits ? 0 : nowMs() - fromMs),
      leave: () => {
        active.give(account, 1);
        if (keepsSlot) keeping.give(account, 1);
        if (kind === undefined || !hasPlace) return;
        rooms[kind].places.give(account, 1);
        rooms[kind].chars.give(account, heldChars);
      },
      whileWaiting: async (work, chars) => {
        if (!beginWait(chars)) return await work();
        try {
          return await work();
        } finally {
          endWait();
        }
      },
    };
  };

  const takeNeed = (account: string, { kind, keepsSlot }: WaitNeed): boolean => {
    const { places } = rooms[kind];
    if (!places.take(account, 1)) return false;
    if (!keepsSlot || keeping.take(account, 1)) return true;
    places.give(account, 1);
    return false;
  };
  return {
    isFull: () => active.held() >= WIDTH,
    take: (account, need) => {
      if (!active.take(account, 1)) return undefined;
      if (need === undefined || takeNeed(account, need)) return open(account, need);
      active.give(account, 1);
      return undefined;
    },
  };
}
