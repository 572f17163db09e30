import type { Dispatcher, Pool } from "undici";
import { codeOf, messageOf } from "../../../lib/failure.ts";
import { connectPool } from "../../../lib/proxy.ts";
import { readText } from "../../../lib/read-text.ts";
import { KEY_HEADER } from "../../../wire/routes.ts";
import { type Later, type RawAnswer, type Reply } from "./answer.ts";
import { openForbiddenCheck, type ForbiddenCheck } from "./forbidden.ts";
import type { RequestKind } from "./request-limit.ts";
import { outcomeOf, type DaemonObserver } from "./observer.ts";
import type { Pacer } from "./pacer.ts";
import type { OnOddField } from "./record.ts";

/** Addresses of a service and its key. */
export interface ServiceAddress {
  readonly apiUrl: string;
  readonly dbUrl: string;
  /** Host of uploaded files, if it is another one. The key is sent to these three hosts only. */
  readonly resourcesUrl?: string;
  /**
   * Where to fetch files under `resourcesUrl`, if that is a public address that this process cannot use. Default:
   * `resourcesUrl`.
   */
  readonly filesAt?: string;
  readonly pauthkey: string;
}

/** Called when a request passes the gate, where it may have waited for hours: whether it is still wanted. */
export type MayLeave = () => boolean;

export interface TransportOptions {
  readonly address: ServiceAddress;
  readonly pacer: Pacer;
  /** Connections to each host at most. */
  readonly connections: number;
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Whether changes that belong to this signal are suspended. */
  readonly isHeld?: (signal: AbortSignal) => boolean;
  /** Called before a request leaves and after its answer arrives; may throw to simulate a crash. */
  readonly step?: (name: string) => void;
  /** Called with the outcome and the duration of each request. */
  readonly onRequest?: DaemonObserver["request"] | undefined;
  /**
   * Called at the end of each request, including timeouts, and for each resource of a list as it arrives: a service that
   * takes long over a document does not count as a hang of the daemon.
   */
  readonly onMoved?: () => void;
  /** Called once for each kind of request that the service forbids, with the reason. */
  readonly onForbidden?: ((reason: string) => void) | undefined;
  /** Notified of each unusable field of an answer, however often it comes. */
  readonly onOddField?: OnOddField | undefined;
  /** Default: `connectPool`. */
  readonly connect?: Connect;
}

/** Opens the connections to one host, by its origin. */
export type Connect = (origin: string, limits: Pool.Options) => Dispatcher;

/** Errors that occur before the request is written: the service cannot have acted on it. */
export const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_HAS_EXPIRED",
]);

/**
 * A scanned document takes the service minutes, and so does any document while many wait for one embedder. A service that
 * knows this header may answer earlier; others ignore it (RFC 7240, 2). Work that ends within the wait needs no second
 * request; a longer wait would block a slot of the queue.
 */
const PREFER_HEADER = "prefer";
const PREFER_WAIT_MS_MAX = 2000;
/** Requests that change the service. Other requests may leave at any time. */
const CHANGES = new Set(["create", "update", "delete", "take", "upload"]);
const PAUSED: Later = { kind: "later", acted: "no", blame: "service", reason: "paused", isPaused: true };
const UNWANTED: Later = { kind: "later", acted: "no", blame: "service", reason: "no longer wanted" };

/** Longest answer that is buffered. The answer to a create holds the sent text; lists are parsed as a stream. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** A request as the connection pool takes it. */
export type HostRequest = Pick<Dispatcher.RequestOptions, "method" | "path" | "headers" | "body">;

/** A failure of this machine during a request, which says nothing about the service. The request throws it. */
export class LocalFailure extends Error {}

/** A host of the service, and the path of its address. */
export interface Host {
  readonly pool: Dispatcher;
  readonly prefix: string;
}

/** The connections to the service's hosts. */
export type Hosts = ReturnType<typeof openHosts>;

/** Opens the connections. Sends nothing yet. */
export function openHosts({ address, connections, timeoutMs, connect = connectPool }: TransportOptions) {
  const pools = new Map<string, Dispatcher>();
  const at = (base: string): Host => {
    const { origin, pathname } = new URL(base);
    let pool = pools.get(origin);
    if (pool === undefined) {
      // Avoids connections that the service is about to close: a request on one would end in doubt.
      const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, keepAliveTimeoutThreshold: 2000 };
      pool = connect(origin, { connections, ...timeouts });
      pools.set(origin, pool);
    }
    return { pool, prefix: pathname === "/" ? "" : pathname.replace(/\/$/, "") };
  };
  const own = [address.apiUrl, address.dbUrl, address.resourcesUrl ?? address.apiUrl];
  return {
    api: at(address.apiUrl),
    db: at(address.dbUrl),
    at,
    /** Reports whether an address is at one of them. */
    isOurs: (url: string): boolean =>
      URL.canParse(url) && own.some((each) => new URL(each).origin === new URL(url).origin),
    close: async (): Promise<void> => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

interface AttemptOptions {
  readonly mayLeave?: MayLeave | undefined;
  /** Default: control. */
  readonly kind?: RequestKind;
}

/** Sends requests and reports their results. */
export type Transport = ReturnType<typeof openTransport>;

/** Opens the transport to the hosts of the service. */
export function openTransport(options: TransportOptions, hosts: Hosts) {
  const { address, timeoutMs, now } = options;
  const auth = { [KEY_HEADER]: address.pauthkey, accept: "application/json" };
  const json = { ...auth, "content-type": "application/json" };
  const waitSeconds = Math.floor(Math.min(PREFER_WAIT_MS_MAX, timeoutMs / 2) / 1000);
  const send = async (
    to: "api" | "db",
    { path, ...request }: HostRequest,
    signal: AbortSignal,
  ): Promise<RawAnswer> => {
    const { pool, prefix } = hosts[to];
    const answer = await pool.request({ ...request, path: prefix + path, signal });
    const { statusCode: status, headers, body } = answer;
    return { status, headers, text: await readText(body, ANSWER_BYTES_MAX), atMs: now() };
  };
  const forbidden = openForbiddenCheck(async (path, signal) => {
    const state = options.pacer.state();
    // Another request may have been asked to wait since this one left.
    if ("untilMs" in state && state.untilMs > Date.now()) return undefined;
    return await send("db", { method: "GET", path, headers: auth }, signal);
  }, options.onForbidden);
  return {
    db: hosts.db,
    /** Headers with the key; `json` for a body of JSON; `patient` for one that may be answered before its work is done. */
    auth,
    json,
    patient: { ...json, [PREFER_HEADER]: `respond-async, wait=${waitSeconds}` },
    /** Passes the gate, makes one attempt and reports its result to the gate. */
    attempt: openAttempts(options, forbidden),
    send,
  };
}

function openAttempts(
  { pacer, isHeld, step: onStep = () => undefined, onRequest, onMoved = () => undefined }: TransportOptions,
  forbidden: ForbiddenCheck,
) {
  return async <R extends Reply<unknown>>(
    name: string,
    signal: AbortSignal,
    ask: () => Promise<R>,
    { mayLeave, kind = "control" }: AttemptOptions = {},
  ): Promise<R | Later> => {
    const ticket = await pacer.enter(signal, kind);
    // Checked after the gate: a request that waited there while its source was paused must not leave either.
    const isPaused = CHANGES.has(name) && isHeld?.(signal) === true;
    if (isPaused || mayLeave?.() === false) {
      pacer.left(ticket);
      return isPaused ? PAUSED : UNWANTED;
    }
    onStep(name);
    const startMs = performance.now();
    let reply: R | Later;
    try {
      reply = await ask();
    } catch (error) {
      if (signal.aborted || error instanceof LocalFailure) {
        pacer.left(ticket);
        throw error;
      }
      const code = codeOf(error) ?? "";
      reply = {
        kind: "later",
        acted: NOT_SENT.has(code) ? "no" : "maybe",
        blame: NOT_SENT.has(code) ? "service" : "request",
        unreached: NOT_SENT.has(code),
        reason: messageOf(error) || code,
      };
    }
    if (reply.kind !== "later" || reply.isForbidden !== true) forbidden.answered(name);
    else reply = await forbidden.judge(name, reply, signal);
    onMoved();
    onRequest?.(name, outcomeOf(reply), (performance.now() - startMs) / 1000);
    onStep(`${name}:answered`);
    const isOne =
      reply.kind === "later" &&
      (reply.isInFlight === true || (reply.blame === "request" && reply.isForbidden !== undefined));
    if (reply.kind === "later" && !isOne) pacer.failed(ticket, reply);
    else pacer.succeeded(ticket);
    return reply;
  };
}
