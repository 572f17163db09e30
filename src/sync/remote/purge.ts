import { request } from "undici";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import { Failure } from "../../wire/failure.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import type { ServiceAddress } from "./transport.ts";

/** Longest time for an answer: a service rewrites its database, which takes some seconds for each gigabyte. */
const ANSWER_MS_MAX = 30 * 60_000;
/** Requests at a time: those that wait for the database to be rewritten share the next time. */
const AT_ONCE = 8;

/** Removes resources of a service for good, live or deleted. Ids that it does not know count as removed. */
export type Purge = (ids: readonly string[], signal: AbortSignal) => Promise<void>;

/** Opens the removals at a service. They throw `service_unreachable`, `key_refused`, `service_refused`. */
export function openPurge({ dbUrl, pauthkey }: Pick<ServiceAddress, "dbUrl" | "pauthkey">): Purge {
  const dispatcher = openAgent();
  const purge = async (id: string, signal: AbortSignal): Promise<void> => {
    try {
      const { statusCode, body } = await request(
        `${dbUrl}${ROUTES.resource}/${encodeURIComponent(id)}?purge=true`,
        {
          method: "DELETE",
          headers: { [KEY_HEADER]: pauthkey },
          headersTimeout: ANSWER_MS_MAX,
          bodyTimeout: ANSWER_MS_MAX,
          signal,
          dispatcher,
        },
      );
      const text = await body.text();
      if (statusCode !== 200 && statusCode !== 404) throw refused(statusCode, text);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof KbsyncError) throw error;
      throw new KbsyncError(`the service ${dbUrl} does not answer: ${messageOf(error)}`, {
        code: "service_unreachable",
        subject: dbUrl,
        retryable: true,
        hint: "Run the same command again when the service answers: it erases what is left.",
        cause: error,
      });
    }
  };
  return async (ids, signal) => {
    const waiting = [...ids];
    const work = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await purge(id, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  };
}

function refused(status: number, text: string): KbsyncError {
  const failure = Failure.safeParse(parsed(text));
  const { message, code } = failure.success
    ? { message: failure.data.message, code: failure.data.error.code }
    : { message: `HTTP ${status}`, code: String(status) };
  const isKey = status === 401 || status === 403;
  return new KbsyncError(`the service refuses the erasure: ${message}`, {
    code: isKey ? "key_refused" : "service_refused",
    subject: code,
    retryable: status === 503 || status === 429,
    hint: isKey ? "The key needs the scope write." : "Run the same command again: it erases what is left.",
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
