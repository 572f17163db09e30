import { ChatBody } from "../../wire/chat.ts";
import type { ChatJob } from "../store/chat.ts";

/** Whose turn it is among questions whose answers go to webhooks: those of a thread go one after another. */
export interface JobOrder {
  /**
   * Whether it is a job's turn, which then lasts until `leave`. To be asked of the oldest first. One whose turn it is not
   * waits among `behind`.
   */
  take(job: ChatJob): boolean;
  /** A job is over: the next of its thread may be asked for. */
  leave(number: number): void;
  /** Jobs that wait for an older one of their thread; as many as the queue holds at most. */
  behind(): Iterable<number>;
}

/** Opens an order with nothing in it. */
export function openJobOrder(): JobOrder {
  /** The job whose turn it is, by thread. */
  const holders = new Map<string, number>();
  const waiting = new Map<number, string>();
  return {
    take: (job) => {
      const thread = threadOf(job);
      if (thread === undefined) return true;
      const holder = holders.get(thread) ?? job.number;
      if (holder !== job.number) {
        waiting.set(job.number, thread);
        return false;
      }
      holders.set(thread, holder);
      return true;
    },
    leave: (number) => {
      for (const [thread, holder] of holders) {
        if (holder !== number) continue;
        holders.delete(thread);
        // All of them: whichever is the oldest is found first.
        for (const [waiter, of] of waiting) if (of === thread) waiting.delete(waiter);
      }
    },
    behind: () => waiting.keys(),
  };
}

/** Undefined: it belongs to none, or cannot be read, which fails by itself. */
function threadOf({ accountId, body }: ChatJob): string | undefined {
  const parsed = ChatBody.safeParse(JSON.parse(body));
  const threadId = parsed.data?.thread_id ?? undefined;
  // As it is stored, where two that differ in what is no character are the same.
  return threadId && JSON.stringify([accountId, parsed.data?.agent_id, threadId.toWellFormed()]);
}
