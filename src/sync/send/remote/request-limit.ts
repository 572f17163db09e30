import { type Fifo, openFifo } from "../../../lib/fifo.ts";

/** A request that carries a document: `recent` if a person changed it a moment ago, `content` if it is backlog. */
export type ContentKind = "recent" | "content";

/** Lists, reads, deletes and changes of a title are `control`. */
export type RequestKind = ContentKind | "control";

const MINUTE_MS = 60_000;
/** Share of the requests per minute that only one kind may use, so that none waits for all of the others. */
const RESERVE_SHARE = 0.1;

/**
 * Opens the configured number of requests per minute, over all sources. Returns a function that returns 0 if a request may leave
 * now, which then counts; else the time to wait before asking again, in milliseconds. `elapsed` is a monotonic clock.
 */
export function openRequestLimit(
  requestsPerMinute: number,
  elapsed: () => number,
): (kind: RequestKind) => number {
  /** When the requests of the last minute left. */
  const sent: Readonly<Record<RequestKind, Fifo<number>>> = {
    recent: openFifo(),
    content: openFifo(),
    control: openFifo(),
  };
  const count = (times: Fifo<number>): number => {
    for (let at = times.peek(); at !== undefined && at + MINUTE_MS <= elapsed(); at = times.peek())
      times.shift();
    return times.length();
  };
  const reserve = Math.ceil(requestsPerMinute * RESERVE_SHARE);
  return (kind) => {
    let taken = count(sent[kind]);
    for (const other of ["recent", "content", "control"] as const)
      if (other !== kind) taken += Math.max(reserve, count(sent[other]));
    if (taken < requestsPerMinute) {
      sent[kind].push(elapsed());
      return 0;
    }
    const oldest = Object.values(sent).map((times) => times.peek() ?? Infinity);
    return Math.max(1, Math.min(...oldest) + MINUTE_MS - elapsed());
  };
}
