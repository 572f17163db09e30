import { STATUS_CODES } from "node:http";
import { Agent, request } from "undici";
import type { Dispatcher } from "undici";
import { openGate } from "../../lib/gate.ts";
import { answerBytes, ENCODINGS } from "./body.ts";
import { guardedConnector, notPublic } from "./guarded-dial.ts";
import type { ResolveAll } from "./guarded-dial.ts";
import { inWords, linkFailure } from "./link-failure.ts";
import { readLink } from "./link.ts";
import { addressRules } from "../../lib/public-address.ts";

/** Redirects followed; more is a ring, or a maze for crawlers. */
export const REDIRECTS_MAX = 5;
/** Time for everything: names, all redirects, the whole answer. */
export const FETCH_TIMEOUT_MS = 30_000;
/** Largest answer, as large as the largest upload. */
export const FETCH_BYTES_MAX = 32 * 1024 * 1024;
/** Fetches at once: each holds a socket and a file for up to the timeout. */
const FETCHES_MAX = 32;
/** Fetches beyond that, each of an account of which none is under way: nobody waits for another's slow servers. */
const GUESTS_MAX = 8;
/** Fetches that may wait: all queued documents that may (`resources/job-slots.ts`), and requests. */
const WAITING_MAX = 1000;
/** Of one account, so that another one finds room. */
const WAITING_SHARE_MAX = 750;
/** Longest validator kept; what is longer is not worth a row. */
const VALIDATOR_CHARS_MAX = 1024;

/** What a server said of the version it sent, to ask later whether there is another. */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** An answer with status 200. The body can be read once, while `take` runs. */
export interface LinkAnswer {
  /** Where it came from in the end. */
  readonly url: URL;
  /** The header as it came. */
  readonly contentType: string | undefined;
  readonly validators: Validators;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Fetches public addresses for people who are not trusted with this machine's place in the network. */
export interface Fetcher {
  /**
   * Throws `link_refused` for an address whose name or literal tells, without a look-up, that it may not be asked. What
   * passes is decided at the dial.
   */
  refuse(url: URL): void;
  /**
   * Hands the answer to `take` and resolves with what that does; with "unchanged" when the server says that nothing
   * changed since `known`. Throws `link_refused` for what may not be asked, and `link_failed` with the cause in words;
   * what `busy` makes when too much is under way; what `take` throws; and the reason of `signal`, when nobody wants it
   * any more.
   */
  fetch<T>(
    url: URL,
    known: Validators | undefined,
    take: (answer: LinkAnswer) => Promise<T>,
    options?: FetchOptions,
  ): Promise<T | "unchanged">;
}

/** For whom an address is fetched. */
export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  /** Account and owner, among whom the time of fetches is shared equally. Default: nobody's. */
  readonly tenant?: readonly string[] | undefined;
  /** Called before the address is asked, when the fetch has had its turn. */
  readonly onBegin?: (() => Promise<void>) | undefined;
}

/** What a fetcher is opened with. */
export interface FetcherOptions {
  /** Hosts and ranges that may be asked although they are not public. */
  readonly allow: readonly string[];
  /** Sent as `user-agent`. */
  readonly agent: string;
  /** Makes the failure for a fetch that finds the line full. */
  readonly busy: () => Error;
  readonly bytesMax?: number;
  readonly timeoutMs?: number;
  /** Given by tests; default the system's. */
  readonly resolve?: ResolveAll;
}

/** Makes a fetcher. It keeps no connection between fetches, takes no proxy from the environment, and has no cookies. */
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
    known: Validators | undefined,
    take: (answer: LinkAnswer) => Promise<T>,
    leaving: AbortSignal | undefined,
  ): Promise<T | "unchanged"> => {
    // Connections of its own for each fetch: none outlives the check of its dial.
    const dispatcher = new Agent({ connect, connections: 1, pipelining: 1 });
    const patience = AbortSignal.timeout(timeoutMs);
    const signal = leaving === undefined ? patience : AbortSignal.any([patience, leaving]);
    const headers = { ...ACCEPT, "user-agent": agent, ...conditions(known) };
    const worded = (error: unknown, url: URL): Error => {
      leaving?.throwIfAborted();
      return inWords(patience.aborted ? patience.reason : error, url, timeoutMs);
    };
    const ask = async (url: URL): Promise<Dispatcher.ResponseData> => {
      try {
        const answer = await request(url, { dispatcher, signal, method: "GET", headers });
        // A body that nobody reads to its end breaks off when the connection goes: no news.
        answer.body.on("error", () => undefined);
        return answer;
      } catch (error) {
        throw worded(error, url);
      }
    };
    let url = first;
    try {
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
        const answer = await ask(url);
        const next = redirectOf(answer, url);
        if (next === undefined) {
          if (answer.statusCode === 304 && known !== undefined) return "unchanged";
          const from = url;
          const read = linkAnswer(answer, from, bytesMax);
          return await take({ ...read, body: rethrowing(read.body, (error) => worded(error, from)) });
        }
        // Whatever it holds is not wanted; the connection goes with it.
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
    fetch: (url, known, take, { signal, tenant, onBegin } = {}) =>
      gate.run(
        async () => {
          await onBegin?.();
          return run(url, known, take, signal);
        },
        { signal, path: tenant },
      ),
  };
}

const ACCEPT = {
  accept: "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,image/*;q=0.8,*/*;q=0.5",
  "accept-encoding": ENCODINGS,
};

function conditions(known: Validators | undefined): Record<string, string> {
  return {
    ...(known?.etag === undefined ? {} : { "if-none-match": known.etag }),
    ...(known?.lastModified === undefined ? {} : { "if-modified-since": known.lastModified }),
  };
}

/** Where the answer sends us. Throws for an address that may not be asked. */
function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined;
  const location = [headers["location"]].flat()[0];
  if (location === undefined) {
    throw linkFailure(`the server answered ${statusCode} without saying where it moved`, from.host);
  }
  return readLink(location, from);
}

function linkAnswer(answer: Dispatcher.ResponseData, url: URL, bytesMax: number): LinkAnswer {
  const { statusCode, headers, body } = answer;
  if (statusCode !== 200) {
    const words = STATUS_CODES[statusCode];
    throw linkFailure(`the server answered ${statusCode}${words === undefined ? "" : ` ${words}`}`, url.host);
  }
  const header = (name: string): string | undefined => [headers[name]].flat()[0];
  const declared = Number(header("content-length") ?? 0);
  if (declared > bytesMax) {
    throw linkFailure(`its answer is larger than ${bytesMax} bytes`, url.host);
  }
  return {
    url,
    contentType: header("content-type"),
    validators: { ...kept("etag", header("etag")), ...kept("lastModified", header("last-modified")) },
    body: answerBytes(body, header("content-encoding"), bytesMax),
  };
}

/** The same bytes; what breaks off on the way is told in words, apart from what goes wrong with whoever reads. */
async function* rethrowing(
  bytes: AsyncIterable<Uint8Array>,
  worded: (error: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  const parts = bytes[Symbol.asyncIterator]();
  try {
    for (;;) {
      let step: IteratorResult<Uint8Array>;
      try {
        step = await parts.next();
      } catch (error) {
        throw worded(error);
      }
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    await parts.return?.();
  }
}

/** A validator that can be sent back as a header. */
function kept(name: keyof Validators, value: string | undefined): Validators {
  const fit = value !== undefined && value.length <= VALIDATOR_CHARS_MAX && /^[\x20-\x7e]+$/.test(value);
  return fit ? { [name]: value } : {};
}
