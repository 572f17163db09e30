import { STATUS_CODES } from "node:http";
import { Agent, request } from "undici";
import type { Dispatcher } from "undici";
import { openGate } from "../../lib/gate.ts";
import { answerBytes, ENCODINGS } from "./body.ts";
import { guardedConnector, notPublic } from "./guarded-dial.ts";
import type { ResolveAll } from "./guarded-dial.ts";
import { fetchFailure, linkFailure } from "./link-failure.ts";
import { readLink } from "./link.ts";
import { addressRules } from "../../lib/public-address.ts";

/** Redirects followed; more is a loop or a crawler trap. */
const REDIRECTS_MAX = 5;
/** Timeout of a fetch, with name resolution, all redirects and the whole body. */
const FETCH_TIMEOUT_MS = 30_000;
/** Largest body, as large as the largest upload. */
const FETCH_BYTES_MAX = 32 * 1024 * 1024;
/** Concurrent fetches: each holds a socket and a file for up to the timeout. */
const FETCHES_MAX = 32;
/** Extra fetches for accounts without a fetch in flight, so that no account waits for the slow servers of another. */
const GUESTS_MAX = 8;
/** Fetches that may wait: all documents that may be queued (`jobs/job-slots.ts`), and requests. */
const WAITING_MAX = 1000;
/** Waiting fetches of one account, so that others can still queue. */
const WAITING_SHARE_MAX = 750;

/** A response with status 200. The body can be read once, while `take` runs. */
export interface LinkAnswer {
  /** The URL after redirects. */
  readonly url: URL;
  /** The raw `content-type` header. */
  readonly contentType: string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Fetches public addresses for clients that must not reach the private network of this machine. */
export interface Fetcher {
  /**
   * Throws `link_refused` for a host that is refused without a DNS lookup, by its name or literal. The dial decides about
   * other hosts.
   */
  refuse(url: URL): void;
  /**
   * Passes the response to `take` and resolves with its result. Throws `link_refused` for a forbidden address, `link_failed` with
   * the cause in words, the error of `busy` if too many fetches wait, the error of `take`, and the reason of `signal`.
   */
  fetch<T>(url: URL, take: (answer: LinkAnswer) => Promise<T>, options?: FetchOptions): Promise<T>;
}

/** Options of a fetch. */
export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  /** Account and owner. Fetching time is shared equally among tenants. Default: none. */
  readonly tenant?: readonly string[] | undefined;
  /** Called when the fetch leaves the queue, before the request. */
  readonly onBegin?: (() => Promise<void>) | undefined;
}

/** Options of a fetcher. */
export interface FetcherOptions {
  /** Hosts and ranges that are allowed although they are not public. */
  readonly allow: readonly string[];
  /** Sent as `user-agent`. */
  readonly agent: string;
  /** Creates the error for a fetch that finds the queue full. */
  readonly busy: () => Error;
  readonly bytesMax?: number;
  readonly timeoutMs?: number;
  /** Set by tests; default the system's resolver. */
  readonly resolve?: ResolveAll;
}

/** Opens a fetcher. It reuses no connections, ignores proxies in the environment, and sends no cookies. */
export function openFetcher(options: FetcherOptions): Fetcher {
  const { allow, agent, busy, bytesMax = FETCH_BYTES_MAX, timeoutMs = FETCH_TIMEOUT_MS } = options;
  const rules = addressRules(allow);
  const connect = guardedConnector(rules, options.resolve);
  const gate = openGate({
    width: FETCHES_MAX,
    guests: GUESTS_MAX,
    lineMax: WAITING_MAX,
    shareMax: WAITING_SHARE_MAX,
    full: busy,
  });

  const run = async <T>(
    first: URL,
    take: (answer: LinkAnswer) => Promise<T>,
    abandoned: AbortSignal | undefined,
  ): Promise<T> => {
    // An agent per fetch: no connection outlives the check of its dial.
    const dispatcher = new Agent({ connect, connections: 1, pipelining: 1 });
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = abandoned === undefined ? timeout : AbortSignal.any([timeout, abandoned]);
    const headers = { accept: ACCEPT, "accept-encoding": ENCODINGS, "user-agent": agent };
    const failureFor = (error: unknown, url: URL): Error => {
      abandoned?.throwIfAborted();
      return fetchFailure(timeout.aborted ? timeout.reason : error, url, timeoutMs);
    };
    const ask = async (url: URL): Promise<Dispatcher.ResponseData> => {
      try {
        const answer = await request(url, { dispatcher, signal, method: "GET", headers });
        // Destroying the connection fails a body that is not read to its end; ignores that error.
        answer.body.on("error", () => undefined);
        return answer;
      } catch (error) {
        throw failureFor(error, url);
      }
    };
    let url = first;
    try {
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
        const answer = await ask(url);
        const next = redirectOf(answer, url);
        if (next === undefined) {
          const from = url;
          const read = linkAnswer(answer, from, bytesMax);
          return await take({ ...read, body: rethrowing(read.body, (error) => failureFor(error, from)) });
        }
        // Discards the body of a redirect, with its connection.
        answer.body.destroy();
        url = next;
      }
      throw linkFailure(`it redirects more than ${REDIRECTS_MAX} times`, first.host);
    } finally {
      await dispatcher.destroy();
    }
  };
  return {
    refuse: ({ hostname }) => {
      if (!rules.mayAllow(hostname)) throw notPublic(hostname);
    },
    fetch: (url, take, { signal, tenant, onBegin } = {}) =>
      gate.run(
        async () => {
          await onBegin?.();
          return run(url, take, signal);
        },
        { signal, path: tenant },
      ),
  };
}

/** What documents can be made of. */
const ACCEPT =
  "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,image/*;q=0.8,*/*;q=0.5";

/** Returns the target of a redirect; undefined for other responses. Throws for a forbidden address. */
function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined;
  const location = [headers["location"]].flat()[0];
  if (location === undefined) {
    throw linkFailure(`the server answered ${statusCode} without a location`, from.host);
  }
  return readLink(location, from);
}

function linkAnswer(answer: Dispatcher.ResponseData, url: URL, bytesMax: number): LinkAnswer {
  const { statusCode, headers, body } = answer;
  if (statusCode !== 200) {
    const name = STATUS_CODES[statusCode];
    throw linkFailure(`the server answered ${statusCode}${name === undefined ? "" : ` ${name}`}`, url.host);
  }
  const header = (name: string): string | undefined => [headers[name]].flat()[0];
  const declared = Number(header("content-length") ?? 0);
  if (declared > bytesMax) {
    throw linkFailure(`its answer is larger than ${bytesMax} bytes`, url.host);
  }
  return {
    url,
    contentType: header("content-type"),
    body: answerBytes(body, header("content-encoding"), bytesMax),
  };
}

/** Yields the same bytes and maps errors of the source. Errors of the consumer pass unchanged. */
async function* rethrowing(
  bytes: AsyncIterable<Uint8Array>,
  failureFor: (error: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  const parts = bytes[Symbol.asyncIterator]();
  try {
    for (;;) {
      let step: IteratorResult<Uint8Array>;
      try {
        step = await parts.next();
      } catch (error) {
        throw failureFor(error);
      }
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    await parts.return?.();
  }
}
