import { request } from "undici";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import { Failure } from "../../wire/failure.ts";
import { CollectionsAnswer } from "../../wire/resource.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import type { ServiceAddress } from "./transport.ts";

/** Longest time for an answer: a service rewrites its database, which takes some seconds for each gigabyte. */
const ANSWER_MS_MAX = 30 * 60_000;
/** Requests at a time: those that wait for the database to be rewritten share the next time. */
const AT_ONCE = 8;

/**
 * Removes resources of a service for good, live or deleted. Ids that it does not know count as removed. Returns false if the service
 * does not declare that it removes texts: it has deleted the resources, and retains what it retains.
 */
export type Purge = (ids: readonly string[], signal: AbortSignal) => Promise<boolean>;

/** Opens the removals at a service. They throw `service_unreachable`, `key_refused`, `service_refused`. */
export function openPurge({ dbUrl, pauthkey }: Pick<ServiceAddress, "dbUrl" | "pauthkey">): Purge {
  const dispatcher = openAgent();
  const ask = async (
    method: "DELETE" | "GET",
    path: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> => {
    try {
      const { statusCode, body } = await request(`${dbUrl}${path}`, {
        method,
        headers: { [KEY_HEADER]: pauthkey },
        headersTimeout: ANSWER_MS_MAX,
        bodyTimeout: ANSWER_MS_MAX,
        signal,
        dispatcher,
      });
      return { status: statusCode, text: await body.text() };
    } catch (error) {
      signal.throwIfAborted();
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
    // A service that does not know purges ignores the query and deletes as always.
    const declared = CollectionsAnswer.safeParse(parsed((await ask("GET", ROUTES.collections, signal)).text));
    const waiting = [...ids];
    const work = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
        const path = `${ROUTES.resource}/${encodeURIComponent(id)}?purge=true`;
        const { status, text } = await ask("DELETE", path, signal);
        if (status !== 200 && status !== 404) throw refused(status, text);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return declared.success && declared.data.data.purges === true;
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
