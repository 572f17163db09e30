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
import { createChangeFeed, type Subscriber, SUBSCRIBED_MAX } from "./change-feed.ts";
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
  /** Documents by the id of the `subscriptions/listen` request. */
  const listens = new Map<RequestId | typeof CONNECTION, Set<string>>();
  const closed = new AbortController();
  let current: Server | undefined;
  let wire: Transport | undefined;
  let joined: Promise<() => void> | undefined;

  // The SDK passes a notification on to the listens that asked for it.
  const subscriber: Subscriber = {
    uris: () => new Set(listens.values().flatMap((uris) => uris.values())),
    updated: (uri) => {
      current?.sendResourceUpdated({ uri }).catch(onDefect);
    },
    listChanged: () => {
      current?.sendResourceListChanged().catch(onDefect);
    },
    ended: () => {
      for (const id of listens.keys()) if (id !== CONNECTION) wire?.send(completion(id)).catch(onDefect);
      listens.clear();
      joined = undefined;
    },
  };
  const join = async (id: RequestId | typeof CONNECTION, uris: Iterable<string>): Promise<void> => {
    listens.set(id, new Set(uris));
    joined ??= feed.subscribe(subscriber);
    try {
      await joined;
    } catch (error) {
      listens.delete(id);
      joined = undefined;
      throw error;
    }
  };
  const leave = (id: RequestId): void => {
    if (!listens.delete(id) || listens.size > 0) return;
    // A failure is thrown to those that joined.
    joined?.then((leaveFeed) => leaveFeed()).catch(() => undefined);
    joined = undefined;
  };
  const joinList = async (server: Server): Promise<void> => {
    for (let isLate = false; !closed.signal.aborted; isLate = true) {
      try {
        await join(CONNECTION, listens.get(CONNECTION) ?? []);
        if (isLate) await server.sendResourceListChanged();
        return;
      } catch (error) {
        if (!(error instanceof KbsyncError) || !error.retryable) return;
        await setTimeout(AGAIN_MS, undefined, { signal: closed.signal, ref: false }).catch(() => undefined);
      }
    }
  };
  const serveLegacy = (server: Server): void => {
    server.oninitialized = () => {
      joinList(server).catch(onDefect);
    };
    server.setRequestHandler("resources/subscribe", async ({ params: { uri } }) => {
      if (!isDocument(uri)) throw new ResourceNotFoundError(uri);
      const uris = new Set(listens.get(CONNECTION)).add(uri);
      if (uris.size > SUBSCRIBED_MAX) {
        const message = `More than ${SUBSCRIBED_MAX} documents are subscribed to.`;
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, message, undefined);
      }
      try {
        await join(CONNECTION, uris);
      } catch (error) {
        throw new ProtocolError(ProtocolErrorCode.InternalError, errorText(error, onDefect), undefined);
      }
      return {};
    });
    server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
      listens.get(CONNECTION)?.delete(uri);
      return {};
    });
  };

  return {
    watch: (transport) => {
      wire = transport;
      return watched(transport, {
        received: (message) => {
          const cancelled = Cancelled.safeParse(message);
          if (cancelled.success) leave(cancelled.data.params.requestId);
        },
        // An acknowledgement says that from now on no change is missed.
        sending: async (message) => {
          const acknowledged = Acknowledged.safeParse(message);
          if (!acknowledged.success) return message;
          const { _meta, notifications } = acknowledged.data.params;
          const id = _meta[SUBSCRIPTION_ID_META_KEY];
          const { resourceSubscriptions: uris = [], resourcesListChanged = false } = notifications;
          if (uris.length === 0 && !resourcesListChanged) return message;
          try {
            await join(id, uris);
            return message;
          } catch (error) {
            const refusal = { code: ProtocolErrorCode.InternalError, message: errorText(error, onDefect) };
            return { jsonrpc: "2.0", id, error: refusal };
          }
        },
      });
    },
    attach: (server, era) => {
      current = server;
      if (era === "legacy") serveLegacy(server);
    },
    close: () => {
      closed.abort();
      feed.close();
    },
  };
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

/** Returns the transport with a look at each message that arrives and a filter of those that leave. */
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
