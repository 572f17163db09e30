import { KbsyncError } from "../../../lib/failure.ts";
import type { Reply } from "./answer.ts";
import { openPacer } from "./pacer.ts";
import { openRemote, type Remote, type RemoteOptions } from "./remote.ts";

/** Options of a client for one command. */
export interface ClientOptions extends Pick<
  RemoteOptions,
  "address" | "connections" | "timeoutMs" | "onCapabilities"
> {
  /** Time without an answer after which it gives up: a person waits for it. */
  readonly patienceMs: number;
}

/** Opens a client for one command of a person. Its requests throw `service_unreachable` and `key_refused`. */
export function openClient({ patienceMs, ...options }: ClientOptions): Remote {
  const pacer = openPacer({
    widthMax: options.connections,
    patienceMs: () => patienceMs,
    random: Math.random,
    onWidth: () => undefined,
    onTrouble: () => undefined,
  });
  return openRemote({ ...options, pacer, now: Date.now });
}

/**
 * Repeats a request until it is answered; undefined: what it asks for does not exist. Throws `service_refused` with the service's own
 * code as its subject, and what the request throws.
 */
export async function answered<T>(what: string, send: () => Promise<Reply<T>>): Promise<T | undefined> {
  for (;;) {
    const reply = await send();
    switch (reply.kind) {
      case "done":
        return reply.value;
      case "gone":
        return undefined;
      case "refused":
        throw refused(what, reply.message, reply.code);
      case "later":
        // Otherwise the gate waits, and throws at the end of patience.
        if (reply.blame === "request" && reply.isForbidden === true)
          throw refused(what, reply.reason, "forbidden");
    }
  }
}

function refused(what: string, words: string, subject: string): KbsyncError {
  return new KbsyncError(`the service refuses the ${what}: ${words}`, { code: "service_refused", subject });
}
