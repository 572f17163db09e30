import { setTimeout } from "node:timers/promises";
import {
  type JSONRPCMessage,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Server,
  SUBSCRIPTION_ID_META_KEY,
  type Transport,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import { type ChangeFeed, createChangeFeed, type Subscriber, SUBSCRIBED_MAX } from "./change-feed.ts";
import type { Caller } from "./caller.ts";
import { documentUri } from "./document-link.ts";
import { errorText } from "./tool-result.ts";

/** The subscriptions of a client that is connected over one channel. */
export interface StdioSubscriptions {
  /** Returns the transport with a watch on `subscriptions/listen`, which the SDK answers itself. */
  watch(transport: Transport): Transport;
  /** Makes a server the one that sends the notifications. */
  attach(server: Server, era: "legacy" | "modern"): void;
  close(): void;
}

/** Time after which the feed of a client of the older protocol is tried again if no service runs. */
const AGAIN_MS = 2000;
/** The older protocol's subscription to the list, which comes with the connection. */
const CONNECTION = Symbol("connection");

/** Opens the subscriptions of a client. All of them, of both ages of the protocol, are one subscriber of one feed. */
export function openStdioSubscriptions(
  caller: Caller,
  onDefect: (error: unknown) => void,
): StdioSubscriptions {
  const feed = createChangeFeed(caller, onDefect);
  const closed = new AbortController();
  let current: Server | undefined;
  let wire: Transport | undefined;
  // The SDK passes a notification on to the listens that asked for it.
  const listens = openListens(feed, {
    updated: (uri) => {
      current?.sendResourceUpdated({ uri }).catch(onDefect);
    },
    listChanged: () => {
      current?.sendResourceListChanged().catch(onDefect);
    },
    ended: (id) => {
      wire?.send(completion(id)).catch(onDefect);
    },
  });

  return {
    watch: (transport) => {
      wire = transport;
      return watched(transport, {
        received: (message) => {
          const cancelled = Cancelled.safeParse(message);
          if (cancelled.success) listens.leave(cancelled.data.params.requestId);
        },
        sending: (message) => joinAcknowledged(listens, message, onDefect),
      });
    },
    attach: (server, era) => {
      current = server;
      if (era === "legacy") serveLegacy(server, listens, closed.signal, onDefect);
    },
    close: () => {
      closed.abort();
      feed.close();
    },
  };
}

/** The open listens of a client: the documents of each, by the id of its request. */
interface Listens {
  readonly uris: ReadonlyMap<RequestId | typeof CONNECTION, Set<string>>;
  /** Opens a listen, or replaces its documents. Resolves when it misses no later change; throws what the feed throws. */
  join(id: RequestId | typeof CONNECTION, uris: Iterable<string>): Promise<void>;
  leave(id: RequestId): void;
}

/** Opens the listens of a client. `ended` is called for each listen by request that the feed ends. */
function openListens(
  feed: ChangeFeed,
  {
    ended,
    ...notified
  }: Pick<Subscriber, "updated" | "listChanged"> & { readonly ended: (id: RequestId) => void },
): Listens {
  const listens = new Map<RequestId | typeof CONNECTION, Set<string>>();
  let joined: Promise<() => void> | undefined;
  const subscriber: Subscriber = {
    ...notified,
    uris: () => new Set(listens.values().flatMap((uris) => uris.values())),
    ended: () => {
      for (const id of listens.keys()) if (id !== CONNECTION) ended(id);
      listens.clear();
      joined = undefined;
    },
  };
  return {
    uris: listens,
    join: async (id, uris) => {
      listens.set(id, new Set(uris));
      joined ??= feed.subscribe(subscriber);
      try {
        await joined;
      } catch (error) {
        listens.delete(id);
        joined = undefined;
        throw error;
      }
    },
    leave: (id) => {
      if (!listens.delete(id) || listens.size > 0) return;
      // A failure is thrown to those that joined.
      joined?.then((leaveFeed) => leaveFeed()).catch(() => undefined);
      joined = undefined;
    },
  };
}

/**
 * Opens the listen that a message acknowledges, and returns the message: an acknowledgement promises that from now on no change
 * is missed. Returns an error in its place if the listen cannot be opened, and every other message as it is.
 */
async function joinAcknowledged(
  listens: Listens,
  message: JSONRPCMessage,
  onDefect: (error: unknown) => void,
): Promise<JSONRPCMessage> {
  const acknowledged = Acknowledged.safeParse(message);
  if (!acknowledged.success) return message;
  const { _meta, notifications } = acknowledged.data.params;
  const id = _meta[SUBSCRIPTION_ID_META_KEY];
  const { resourceSubscriptions: uris = [], resourcesListChanged = false } = notifications;
  if (uris.length === 0 && !resourcesListChanged) return message;
  try {
    await listens.join(id, uris);
    return message;
  } catch (error) {
    const refusal = { code: ProtocolErrorCode.InternalError, message: errorText(error, onDefect) };
    return { jsonrpc: "2.0", id, error: refusal };
  }
}

/** Serves the subscriptions of the older protocol, whose connection is one listen. */
function serveLegacy(
  server: Server,
  listens: Listens,
  closed: AbortSignal,
  onDefect: (error: unknown) => void,
): void {
  server.oninitialized = () => {
    joinList(server, listens, closed).catch(onDefect);
  };
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }) => {
    if (!isDocument(uri)) throw new ResourceNotFoundError(uri);
    const uris = new Set(listens.uris.get(CONNECTION)).add(uri);
    if (uris.size > SUBSCRIBED_MAX) {
      const message = `More than ${SUBSCRIBED_MAX} documents are subscribed to.`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message, undefined);
    }
    try {
      await listens.join(CONNECTION, uris);
    } catch (error) {
      throw new ProtocolError(ProtocolErrorCode.InternalError, errorText(error, onDefect), undefined);
    }
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    listens.uris.get(CONNECTION)?.delete(uri);
    return {};
  });
}

/** Subscribes a connection of the older protocol to the list, as soon as a service runs. */
async function joinList(server: Server, listens: Listens, closed: AbortSignal): Promise<void> {
  for (let isLate = false; !closed.aborted; isLate = true) {
    try {
      await listens.join(CONNECTION, listens.uris.get(CONNECTION) ?? []);
      if (isLate) await server.sendResourceListChanged();
      return;
    } catch (error) {
      if (!(error instanceof KbsyncError) || !error.retryable) return;
      await setTimeout(AGAIN_MS, undefined, { signal: closed, ref: false }).catch(() => undefined);
    }
  }
}

const RequestId = z.union([z.string(), z.number()]);
type RequestId = z.infer<typeof RequestId>;

const Cancelled = z.object({
  method: z.literal("notifications/cancelled"),
  params: z.object({ requestId: RequestId }),
});

/** The SDK's acknowledgement of a `subscriptions/listen`, with what it grants. */
const Acknowledged = z.object({
  method: z.literal("notifications/subscriptions/acknowledged"),
  params: z.object({
    _meta: z.object({ [SUBSCRIPTION_ID_META_KEY]: RequestId }),
    notifications: z.object({
      resourceSubscriptions: z.array(z.string()).optional(),
      resourcesListChanged: z.boolean().optional(),
    }),
  }),
});

/** The end of a listen by the server. */
function completion(id: RequestId): JSONRPCMessage {
  const result = { resultType: "complete", _meta: { [SUBSCRIPTION_ID_META_KEY]: id } };
  return { jsonrpc: "2.0", id, result };
}

function isDocument(uri: string): boolean {
  const prefix = documentUri("");
  return uri.startsWith(prefix) && uri.length > prefix.length && uri.length <= URI_CHARS_MAX;
}

/** Longest URI of a subscription. */
const URI_CHARS_MAX = 500;

/** Returns the transport that passes each arriving message to `received`, and sends what `sending` returns for each leaving one. */
function watched(
  wire: Transport,
  {
    received,
    sending,
  }: {
    readonly received: (message: JSONRPCMessage) => void;
    readonly sending: (message: JSONRPCMessage) => Promise<JSONRPCMessage>;
  },
): Transport {
  const outer: Transport = {
    start: () => {
      const callbacks: Pick<Transport, "onmessage" | "onclose" | "onerror"> = {
        onmessage: (message, extra) => {
          received(message);
          outer.onmessage?.(message, extra);
        },
        onclose: () => outer.onclose?.(),
        onerror: (error) => outer.onerror?.(error),
      };
      Object.assign(wire, callbacks);
      return wire.start();
    },
    send: async (message, options) => wire.send(await sending(message), options),
    close: () => wire.close(),
  };
  return outer;
}
