import { Refusal } from "../resources/refusal.ts";

/** Answers up to this long are not counted: the bound on requests under way bounds them, and they are never refused. */
const SHORT_BYTES = 64 * 1024;

/** Bounds what long answers hold in memory all together: a client may ask for many and read none for minutes. */
export interface AnswerRoom {
  /** The share of one request; nothing at first. */
  open(): AnswerShare;
}

/** What the answer of one request holds. Each call says how many bytes that is now, in place of what was said before. */
export interface AnswerShare {
  /** Throws `overloaded` where there is no room. One answer alone has room however long it is: it could never pass otherwise. */
  take(bytes: number): void;
  /** For what must be answered, as a change that was made: it counts, but is not refused. */
  keep(bytes: number): void;
  /** Gives back what it has, and resolves when there is room for `bytes`; in the order of the calls. */
  wait(bytes: number): Promise<void>;
  /** The answer is over; may be called again. From here on the share holds nothing, and waits for nothing. */
  release(): void;
}

/** Opens it for `bytesMax` together. */
export function openAnswerRoom(bytesMax: number): AnswerRoom {
  let held = 0;
  const waiting = new Set<Waiting>(); // at most one of each request under way
  const fits = (bytes: number): boolean => held === 0 || held + bytes <= bytesMax;

  /** Changes what is held, and lets in who waited, the first one first. */
  const change = (bytes: number): void => {
    held += bytes;
    for (const first of waiting) {
      if (!fits(first.bytes)) return;
      waiting.delete(first);
      held += first.bytes;
      first.enter();
    }
  };

  const open = (): AnswerShare => {
    let own = 0;
    let isOver = false;
    let waited: Waiting | undefined;
    const set = (bytes: number): void => {
      const counted = isOver || bytes <= SHORT_BYTES ? 0 : bytes;
      const before = own;
      own = counted;
      change(counted - before);
    };
    return {
      take: (bytes) => {
        const others = held - own;
        if (bytes > SHORT_BYTES && others > 0 && others + bytes > bytesMax) {
          throw new Refusal("overloaded", `Answers of more than ${bytesMax} bytes are under way.`);
        }
        set(bytes);
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
        waited = { bytes, enter, giveUp: resolve };
        waiting.add(waited);
        change(0);
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
  readonly bytes: number;
  enter(): void;
  giveUp(): void;
}
