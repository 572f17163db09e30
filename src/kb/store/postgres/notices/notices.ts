import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { NoticeListener, Notices, NoticeTopic } from "../../notices.ts";
import type { Database } from "../database/database.ts";
import { CHANNEL, openListener, type Listener } from "./listener.ts";
import { echoOf, messagesOf, readMessage } from "./message.ts";

/** Announcements of this time are sent together: each commit of a message takes a lock of the whole database. */
const TOGETHER_MS = 20;
/** Announcements that wait to be sent. Beyond, the others check everything. */
const KEYS_MAX = 1000;
/** Pause between checks of everything, while messages arrive, and while they do not. */
const POLL_MS = 10_000;
const POLL_SILENT_MS = 1000;
/** Pause between checks whether messages arrive, and the longest wait for one. */
const CHECK_MS = 20_000;
const ARRIVAL_MS = 5000;

/** Announcements on a database. They end before the database is closed. */
export interface DatabaseNotices extends Notices {
  close(): Promise<void>;
}

/** Opens the announcements of this process. It listens once somebody does. */
export function openNotices(url: string, database: Pick<Database, "run">): DatabaseNotices {
  const self = randomUUID();
  const send = (text: string): Promise<unknown> =>
    database.run("single", "", (tx) =>
      tx.run("SELECT pg_notify(@channel, @text)", { channel: CHANNEL, text }),
    );
  const sender = openSender(self, send);
  let listening: { close(): Promise<void> } | undefined;
  return {
    announce: sender.announce,
    listen: (listener) => {
      listening ??= listenFor(self, url, send, listener);
    },
    close: async () => {
      await sender.close();
      await listening?.close();
    },
  };
}

/** Collects announcements, and sends those of some milliseconds together. */
function openSender(self: string, send: (text: string) => Promise<unknown>) {
  let waiting = new Map<NoticeTopic, Set<string>>();
  let keys = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();
  const flush = async (): Promise<void> => {
    timer = undefined;
    const messages = keys > KEYS_MAX ? [JSON.stringify({ from: self })] : messagesOf(self, waiting);
    waiting = new Map();
    keys = 0;
    // The others check everything after a while: a database that does not answer delays them.
    for (const text of messages) await send(text).catch(() => undefined);
  };
  return {
    announce: (topic: NoticeTopic, key: string): void => {
      const known = waiting.get(topic) ?? new Set();
      if (known.has(key)) return;
      keys += 1;
      if (keys <= KEYS_MAX) waiting.set(topic, known.add(key));
      timer ??= setTimeout(() => void (sending = sending.then(flush)), TOGETHER_MS).unref();
    },
    close: async (): Promise<void> => {
      clearTimeout(timer);
      if (keys > 0) sending = sending.then(flush);
      await sending;
    },
  };
}

/** Passes on what others announce, and checks everything at intervals. */
function listenFor(
  self: string,
  url: string,
  send: (text: string) => Promise<unknown>,
  { onNotice, onMissed }: NoticeListener,
): Listener {
  /** Whether messages arrive at present. */
  let isLive = false;
  let echoes = 0;
  let onEcho: ((echo: number) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  const lookLater = (): void => {
    clearTimeout(timer);
    timer = setTimeout(checkAll, isLive ? POLL_MS : POLL_SILENT_MS).unref();
  };
  const checkAll = (): void => {
    onMissed();
    lookLater();
  };
  /** Sends a message to itself. Resolves with whether it arrived. */
  const arrives = async (signal: AbortSignal): Promise<boolean> => {
    const echo = (echoes += 1);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    onEcho = (came) => came === echo && resolve(true);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ARRIVAL_MS)]);
    limit.addEventListener("abort", () => resolve(false), { once: true });
    if (limit.aborted) resolve(false);
    await send(echoOf(self, echo)).catch(() => resolve(false));
    return promise;
  };
  const listener = openListener(url, {
    onMessage: (text) => {
      const message = readMessage(text);
      if (message === undefined) return;
      if (message.from === self) return onEcho?.(message.echo ?? 0);
      if (message.announced === undefined) return checkAll();
      for (const [topic, key] of message.announced) onNotice(topic, key);
    },
    watch: async (signal, answers) => {
      try {
        for (;;) {
          const wasLive = isLive;
          isLive = await arrives(signal);
          // A pooler takes the command, and delivers nothing. Repeating it would leave it at every connection of the pool.
          if (!isLive && (signal.aborted || !(await answers()))) return;
          // Announcements from before the first message are lost.
          if (isLive !== wasLive) checkAll();
          await sleep(CHECK_MS, undefined, { signal });
        }
      } finally {
        isLive = false;
        lookLater();
      }
    },
  });
  lookLater();
  return {
    close: async () => {
      await listener.close();
      clearTimeout(timer);
    },
  };
}
