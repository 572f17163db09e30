import { openShares } from "../../../lib/shares.ts";
import { Refusal } from "../../resources/refusal.ts";

/** Responses up to this size are not counted or refused: the bound on requests in flight bounds them. */
const SHORT_BYTES = 64 * 1024;

/** Bounds the memory of all long responses: a client may request many and read none for minutes. */
export interface ResponseMemory {
  /** Opens the share of one request of an account, empty at first. */
  open(account: string): ResponseShare;
}

/** The memory of one request's response. Each call replaces the number of bytes that the share holds. */
export interface ResponseShare {
  /** Throws `overloaded` if no memory is left. If nothing is held, any size is allowed: it could never fit otherwise. */
  take(bytes: number): void;
  /** Counts bytes without refusing them, for a response that must be sent, such as that of a completed change. */
  force(bytes: number): void;
  /** Releases what it holds, and resolves when `bytes` are available; in the order of the calls. */
  wait(bytes: number): Promise<void>;
  /** Ends the response; may be called again. The share then holds nothing and waits for nothing. */
  release(): void;
}

/** Opens the memory of `bytesMax` in total. Each account has a share of it (`openShares`). */
export function openResponseMemory(bytesMax: number): ResponseMemory {
  const shares = openShares(bytesMax);
  const waiting = new Set<Waiting>(); // at most one per request in flight

  /** Admits waiting shares, those of one account in order. */
  const admitWaiting = (): void => {
    const blocked = new Set<string>();
    for (const next of waiting) {
      if (blocked.has(next.account)) continue;
      if (shares.take(next.account, next.bytes)) {
        waiting.delete(next);
        next.admit();
      } else blocked.add(next.account);
    }
  };

  const open = (account: string): ResponseShare => {
    let own = 0;
    let isOver = false;
    let entry: Waiting | undefined;
    const set = (bytes: number): void => {
      const counted = isOver || bytes <= SHORT_BYTES ? 0 : bytes;
      const before = own;
      own = counted;
      shares.force(account, counted - before);
      admitWaiting();
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
        admitWaiting();
        if (own === bytes) return;
        set(before);
        throw new Refusal(
          "overloaded",
          `Answers of more than ${bytesMax} bytes are in flight, or this account has its share of them.`,
        );
      },
      force: set,
      wait: async (bytes) => {
        set(0);
        if (isOver) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        const admit = (): void => {
          own = bytes;
          resolve();
        };
        entry = { account, bytes, admit, cancel: resolve };
        waiting.add(entry);
        admitWaiting();
        await promise;
      },
      release: () => {
        if (entry !== undefined && waiting.delete(entry)) entry.cancel();
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
  admit(): void;
  cancel(): void;
}
