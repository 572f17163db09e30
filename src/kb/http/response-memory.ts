import { openShares } from "../../lib/shares.ts";
import { Refusal } from "../resources/refusal.ts";

/** Answers up to this long are not counted: the bound on requests under way bounds them, and they are never refused. */
const SHORT_BYTES = 64 * 1024;

/** Bounds what long answers hold in memory all together: a client may ask for many and read none for minutes. */
export interface ResponseMemory {
  /** The share of one request of an account; nothing at first. */
  open(account: string): ResponseShare;
}

/** What the answer of one request holds. Each call says how many bytes that is now, in place of what was said before. */
export interface ResponseShare {
  /** Throws `overloaded` where there is no room. One answer alone has room however long it is: it could never pass otherwise. */
  take(bytes: number): void;
  /** For what must be answered, as a change that was made: it counts, but is not refused. */
  keep(bytes: number): void;
  /** Gives back what it has, and resolves when there is room for `bytes`; in the order of the calls. */
  wait(bytes: number): Promise<void>;
  /** The answer is over; may be called again. From here on the share holds nothing, and waits for nothing. */
  release(): void;
}

/** Opens it for `bytesMax` together, of which each account has a share (`openShares`). */
export function openResponseMemory(bytesMax: number): ResponseMemory {
  const shares = openShares(bytesMax);
  const waiting = new Set<Waiting>(); // at most one of each request under way

  /** Lets in who waited, of each account the first one first. */
  const letIn = (): void => {
    const blocked = new Set<string>();
    for (const next of waiting) {
      if (blocked.has(next.account)) continue;
      if (shares.take(next.account, next.bytes)) {
        waiting.delete(next);
        next.enter();
      } else blocked.add(next.account);
    }
  };

  const open = (account: string): ResponseShare => {
    let own = 0;
    let isOver = false;
    let waited: Waiting | undefined;
    const set = (bytes: number): void => {
      const counted = isOver || bytes <= SHORT_BYTES ? 0 : bytes;
      const before = own;
      own = counted;
      shares.force(account, counted - before);
      letIn();
    };
    return {
      take: (bytes) => {
        if (bytes <= SHORT_BYTES || isOver) {
          set(bytes);
          return;
        }
        const before = own;
        shares.give(account, before);
        own = shares.take(account, bytes) ? bytes : 0;
        letIn();
        if (own === bytes) return;
        set(before);
        throw new Refusal(
          "overloaded",
          `Answers of more than ${bytesMax} bytes are under way, or this account has its share of them.`,
        );
      },
      keep: set,
      wait: async (bytes) => {
        set(0);
        if (isOver) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        const enter = (): void => {
          own = bytes;
          resolve();
        };
        waited = { account, bytes, enter, giveUp: resolve };
        waiting.add(waited);
        letIn();
        await promise;
      },
      release: () => {
        if (waited !== undefined && waiting.delete(waited)) waited.giveUp();
        set(0);
        isOver = true;
      },
    };
  };
  return { open };
}

interface Waiting {
  readonly account: string;
  readonly bytes: number;
  enter(): void;
  giveUp(): void;
}
