import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";

/** The channel of all processes. Two stores in one database share it: each wakes the other for nothing. */
export const CHANNEL = "kbsync";
/** Longest wait for a connection, and for its answers. */
const ANSWER_MS = 5000;
/** Pauses between tries to connect. */
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 30_000;

/** A connection of its own that receives messages, and connects again whenever it is lost. */
export interface Listener {
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly onMessage: (text: string | undefined) => void;
  /** Watches a connection until the signal, or until it does not answer: a network may fail without a word. */
  readonly watch: (signal: AbortSignal, answers: () => Promise<boolean>) => Promise<void>;
}

/** Opens a listener, which connects in the background. */
export function openListener(url: string, { onMessage, watch }: ListenerOptions): Listener {
  const stop = new AbortController();
  const { signal } = stop;
  /** Listens until the connection ends. */
  const listen = async (): Promise<void> => {
    const lost = new AbortController();
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      application_name: "kbsync listener",
    });
    // A listener of errors, without which Node ends the program.
    client.on("error", () => lost.abort());
    client.on("end", () => lost.abort());
    client.on("notification", ({ payload }) => onMessage(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      const answers = (): Promise<boolean> =>
        client.query("SELECT 1").then(
          () => true,
          () => false,
        );
      await watch(AbortSignal.any([signal, lost.signal]), answers);
    } finally {
      await endOf(client);
    }
  };
  const listenAlways = async (): Promise<void> => {
    for (let tries = 0; !signal.aborted; tries += 1) {
      const startMs = performance.now();
      // Whatever failed shows in the next try; the store reports a database that does not answer.
      await listen().catch(() => undefined);
      if (performance.now() - startMs > PAUSE_MS_MAX) tries = 0;
      // At random, so that the processes of a database that starts again do not connect at one moment.
      const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const done = listenAlways();
  return {
    close: async () => {
      stop.abort();
      await done;
    },
  };
}

/** Ends a connection. One to a server that does not answer is cut. */
async function endOf(client: Client): Promise<void> {
  const ended = client.end().catch(() => undefined);
  await Promise.race([ended, sleep(ANSWER_MS, undefined, { ref: false })]);
}
