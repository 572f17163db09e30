import { readFileSync } from "node:fs";

/** Detects that events may have been lost. There is one per thread, because its watchers share one kernel queue. */
export type FloodGauge = ReturnType<typeof openFloodGauge>;

/** Length of the kernel's event queue if the system does not reveal it. */
const QUEUED_EVENTS_DEFAULT = 16_384;

/**
 * Opens a gauge. The kernel drops events beyond the length of its queue, and Node does not report it. But libuv empties the
 * queue before the event loop continues, so after a loss, one turn of the loop has seen a full queue. Half a queue counts
 * as a flood, because events of folders that are no longer watched fill the queue too and are invisible.
 */
export function openFloodGauge(limit = maxQueuedEvents() / 2) {
  const listeners = new Set<() => void>();
  let events = 0;
  return {
    /** Must be called for every incoming event. */
    count: (): void => {
      if (events++ > 0) return;
      setImmediate(() => {
        const flooded = events >= limit;
        events = 0;
        if (flooded) for (const listener of listeners) listener();
      });
    },
    /** Adds a listener for floods. Returns a function that removes it. */
    listen: (listener: () => void): (() => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function maxQueuedEvents(): number {
  try {
    const limit = Number.parseInt(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"), 10);
    return limit > 0 ? limit : QUEUED_EVENTS_DEFAULT;
  } catch {
    return QUEUED_EVENTS_DEFAULT; // a hardened service may not read it
  }
}
