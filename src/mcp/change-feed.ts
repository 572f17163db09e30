import { setTimeout } from "node:timers/promises";
import { codeOf, KbsyncError } from "../lib/failure.ts";
import { type Change, NOW } from "../wire/changes.ts";
import type { Caller } from "./caller.ts";
import { documentUri } from "./document-link.ts";

/** Most documents that a subscriber names. */
export const SUBSCRIBED_MAX = 1000;
/** Time after which a broken stream is opened again. */
const AGAIN_MS = 1000;
/** Least time between two notifications of a changed list: clients read the list again after each. */
const LIST_PAUSE_MS = 2000;

/** A listener for the changes of a caller's documents. */
export interface Subscriber {
  /** Returns the URIs of documents, or of parts of them, whose changes it is notified of. */
  uris(): Iterable<string>;
  updated(uri: string): void;
  /** Documents were created or deleted. */
  listChanged(): void;
  /** The feed has ended: the service refuses the key, or has no feed. */
  ended(error: KbsyncError): void;
}

/** The changes that one caller can see. */
export interface ChangeFeed {
  /**
   * Adds a subscriber and returns a function that removes it. Resolves when the subscriber misses no later change. The first
   * subscriber opens the stream, and throws the service's refusal; the last one closes it.
   */
  subscribe(subscriber: Subscriber): Promise<() => void>;
  /** Closes the stream, without notice to subscribers. */
  close(): void;
}

/**
 * Creates the feed of a caller. It reads the service's change feed over one stream for all subscribers. After a disconnect
 * it continues from its cursor. If that cursor has expired, all subscribers are notified of everything.
 */
export function createChangeFeed(caller: Caller, onDefect: (error: unknown) => void): ChangeFeed {
  const subscribers = new Set<Subscriber>();
  let reader: { readonly opened: Promise<void>; readonly abort: AbortController } | undefined;

  const notify = (notifyOne: (subscriber: Subscriber) => void): void => {
    for (const subscriber of subscribers) notifyOne(subscriber);
  };
  const close = (): void => {
    reader?.abort.abort();
    reader = undefined;
    subscribers.clear();
  };
  const end = (error: KbsyncError): void => {
    const left = [...subscribers];
    close();
    for (const subscriber of left) subscriber.ended(error);
  };
  const open = (): NonNullable<typeof reader> => {
    const abort = new AbortController();
    const { signal } = abort;
    const listChanged = paced(() => notify((subscriber) => subscriber.listChanged()), signal);
    const listener: FeedListener = {
      changed: ({ type, _id }) => {
        const uri = documentUri(_id);
        notify((subscriber) => {
          for (const one of subscriber.uris()) if (one.replace(/\?.*$/s, "") === uri) subscriber.updated(one);
        });
        if (type !== "document.updated") listChanged();
      },
      missed: () => {
        notify((subscriber) => {
          for (const uri of subscriber.uris()) subscriber.updated(uri);
        });
        listChanged();
      },
    };
    const fail = (error: unknown): void => {
      if (signal.aborted) return;
      if (!(error instanceof KbsyncError)) onDefect(error);
      end(error instanceof KbsyncError ? error : new KbsyncError("kbsync failed", { code: "internal" }));
    };
    const begin = async (): Promise<void> => {
      const cursor = await newestCursor(caller, signal);
      followFeed(caller, cursor, listener, signal).catch(fail);
    };
    return { opened: begin(), abort };
  };

  return {
    subscribe: async (subscriber) => {
      subscribers.add(subscriber);
      const leave = (): void => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) close();
      };
      reader ??= open();
      try {
        await reader.opened;
      } catch (error) {
        leave();
        throw error;
      }
      return leave;
    },
    close,
  };
}

/** The reports of a feed. */
interface FeedListener {
  changed(change: Change): void;
  /** The cursor has expired: anything may have changed. */
  missed(): void;
}

/** Reads the service's feed from a cursor on, and again after each disconnect. Ends by throwing: a refusal, or the signal's reason. */
async function followFeed(
  caller: Caller,
  start: string,
  listener: FeedListener,
  signal: AbortSignal,
): Promise<never> {
  for (let cursor: string | undefined = start; ; await setTimeout(AGAIN_MS, undefined, { signal })) {
    try {
      if (cursor === undefined) {
        // Reads the position first: what changes after it is reported anyway.
        cursor = await newestCursor(caller, signal);
        listener.missed();
      }
      const { service } = await caller.reach();
      for await (const change of service.followChanges(cursor, signal)) {
        cursor = change.cursor;
        listener.changed(change);
      }
    } catch (error) {
      if (codeOf(error) === "cursor_expired") cursor = undefined;
      else if (!(error instanceof KbsyncError) || !error.retryable) throw error;
    }
  }
}

/** Throws the service's refusal, and `changes_unsupported`. */
async function newestCursor(caller: Caller, signal: AbortSignal): Promise<string> {
  const { service } = await caller.reach();
  const page = await service.changes({ cursor: NOW, limit: 1 }, signal);
  if (page === undefined)
    throw new KbsyncError("the service has no feed of changes", { code: "changes_unsupported" });
  return page.cursor;
}

/** Returns a function that runs `run` at once, or after the pause if it ran shortly before; many calls run it once. */
function paced(run: () => void, signal: AbortSignal): () => void {
  let isPausing = false;
  let isDue = false;
  const start = async (): Promise<void> => {
    isPausing = true;
    do {
      isDue = false;
      run();
      await setTimeout(LIST_PAUSE_MS, undefined, { signal, ref: false });
    } while (isDue);
    isPausing = false;
  };
  return () => {
    if (isPausing) isDue = true;
    // Rejects when the signal is aborted.
    else start().catch(() => undefined);
  };
}
