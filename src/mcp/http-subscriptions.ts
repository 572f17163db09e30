import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { ProtocolErrorCode, type ServerEvent, type ServerEventBus } from "@modelcontextprotocol/server";
import { z } from "zod";
import { openShares } from "../lib/shares.ts";
import type { Caller } from "./caller.ts";
import { type ChangeFeed, createChangeFeed, SUBSCRIBED_MAX } from "./change-feed.ts";
import { errorText } from "./tool-result.ts";

/** Open `subscriptions/listen` streams. No key can have all of them. */
export const LISTENS_MAX = 32;

/** The `subscriptions/listen` streams of all keys. */
export interface HttpSubscriptions {
  /** The SDK's listens subscribe here. */
  readonly bus: ServerEventBus;
  /** Serves a request with the key's feed if it is a listen. */
  serve(key: string, request: Request, serve: (request: Request) => Promise<Response>): Promise<Response>;
  close(): void;
}

/** The request in which the bus is used. */
interface Listen {
  listener: ((event: ServerEvent) => void) | undefined;
  leave(): void;
}

/** Opens the subscriptions. Each key has a feed of its own for all its streams. */
export function openHttpSubscriptions({
  callerOf,
  onDefect,
}: {
  readonly callerOf: (key: string) => Caller;
  readonly onDefect: (error: unknown) => void;
}): HttpSubscriptions {
  const shares = openShares(LISTENS_MAX);
  const feeds = new Map<string, { readonly feed: ChangeFeed; listens: number }>();
  // The SDK's bus is one for all callers; this shows whose request subscribes.
  const requests = new AsyncLocalStorage<Listen>();

  const take = (key: string): { readonly feed: ChangeFeed; readonly give: () => void } | undefined => {
    const name = createHash("sha256").update(key).digest("hex");
    if (!shares.take(name, 1)) return undefined;
    const entry = feeds.get(name) ?? { feed: createChangeFeed(callerOf(key), onDefect), listens: 0 };
    feeds.set(name, entry);
    entry.listens += 1;
    const give = (): void => {
      shares.give(name, 1);
      entry.listens -= 1;
      if (entry.listens === 0) feeds.delete(name);
    };
    return { feed: entry.feed, give };
  };

  const serve: HttpSubscriptions["serve"] = async (key, request, run) => {
    const asked = ListenRequest.safeParse(await bodyOf(request));
    if (!asked.success) return run(request);
    const { id, params } = asked.data;
    const uris = params.notifications.resourceSubscriptions ?? [];
    if (uris.length > SUBSCRIBED_MAX) {
      return refusal(id, "InvalidParams", `More than ${SUBSCRIBED_MAX} documents are subscribed to.`);
    }
    const taken = take(key);
    if (taken === undefined) return refusal(id, "InternalError", "Subscription limit reached");
    const ended = new AbortController();
    const listen: Listen = { listener: undefined, leave: taken.give };
    try {
      const leave = await taken.feed.subscribe({
        uris: () => uris,
        updated: (uri) => listen.listener?.({ kind: "resource_updated", uri }),
        listChanged: () => listen.listener?.({ kind: "resources_list_changed" }),
        ended: () => ended.abort(),
      });
      listen.leave = () => {
        leave();
        taken.give();
      };
      const signal = AbortSignal.any([request.signal, ended.signal]);
      return await requests.run(listen, () => run(new Request(request, { signal })));
    } catch (error) {
      return refusal(id, "InternalError", errorText(error, onDefect));
    } finally {
      // Refused by the SDK, or the client has left already.
      if (listen.listener === undefined) listen.leave();
    }
  };

  return {
    bus: {
      // Nothing but the feeds is published.
      publish: () => undefined,
      subscribe: (listener) => {
        const listen = requests.getStore();
        if (listen === undefined) return () => undefined;
        listen.listener = listener;
        return () => listen.leave();
      },
    },
    serve,
    close: () => {
      for (const { feed } of feeds.values()) feed.close();
    },
  };
}

const ListenRequest = z.object({
  id: z.union([z.string(), z.number()]),
  method: z.literal("subscriptions/listen"),
  params: z.object({
    notifications: z.object({ resourceSubscriptions: z.array(z.string()).optional() }),
  }),
});

/** Returns the body as JSON; undefined if it is none, which the SDK refuses. */
async function bodyOf(request: Request): Promise<unknown> {
  if (request.method !== "POST") return undefined;
  try {
    return await request.clone().json();
  } catch {
    return undefined;
  }
}

function refusal(id: string | number, code: "InvalidParams" | "InternalError", message: string): Response {
  return Response.json({ jsonrpc: "2.0", id, error: { code: ProtocolErrorCode[code], message } });
}
