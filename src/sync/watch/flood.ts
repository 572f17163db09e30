import { readFileSync } from "node:fs";

/** Tells when events may have been lost. One for a thread, whose watchers share one queue of the kernel. */
export interface FloodGauge {
  /** To be called for every event as it comes in. */
  count(): void;
  /** Calls the listener after a flood, until the returned function is called. */
  listen(listener: () => void): () => void;
}

/** Events that the kernel keeps for a reader, where the system does not tell. */
const QUEUED_EVENTS_DEFAULT = 16_384;

/**
 * Opens a gauge. The kernel drops events beyond its queue's length and Node keeps that to itself. But libuv reads the
 * queue until it is empty before it lets the loop go on: after a loss, one turn of the loop has seen a full queue.
 * Half of that counts as a flood, for events of folders no longer watched fill the queue too and are not seen.
 */
export function openFloodGauge(limit = maxQueuedEvents() / 2): FloodGauge {
  const listeners = new Set<() => void>();
  let events = 0;
  return {
    count: () => {
      if (events++ > 0) return;
      setImmediate(() => {
        const flooded = events >= limit;
        events = 0;
        if (flooded) for (const listener of listeners) listener();
      });
    },
    listen: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function maxQueuedEvents(): number {
  try {
    const told = Number.parseInt(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"), 10);
    return told > 0 ? told : QUEUED_EVENTS_DEFAULT;
  } catch {
    return QUEUED_EVENTS_DEFAULT; // a hardened service may not see it
  }
}
