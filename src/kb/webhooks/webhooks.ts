import { randomUUID } from "node:crypto";
import { Agent } from "undici";
import type { buildConnector } from "undici";
import type { ReplayBody } from "../../wire/webhook.ts";
import type { Leases } from "../queue/leases.ts";
import { Refusal, shown } from "../resources/refusal.ts";
import type { Endpoint, EndpointKey, Replayed } from "../store/webhooks.ts";
import { openCourier } from "./courier.ts";
import type { Courier, CourierReport } from "./courier.ts";
import { readEndpoint } from "./endpoints.ts";
import type { EndpointParts } from "./endpoints.ts";
import { ATTEMPT_TIMEOUT_MS, sendDelivery } from "./send.ts";
import type { Attempt, Message, SendParts } from "./send.ts";

/** Idle connections are kept so long: messages of one change come in a row. */
const KEEP_ALIVE_MS = 10_000;
/** Largest head of an answer. */
const HEADER_BYTES_MAX = 16 * 1024;

/** Endpoints, and the courier that carries messages to them and to addresses given with a message. */
export interface Webhooks extends EndpointParts {
  readonly courier: Courier;
  /** Sends a message of type `webhook.test` at once, outside of the queue, and says what came of it. */
  test(at: EndpointKey): Promise<Attempt>;
  close(): Promise<void>;
}

/** What webhooks are opened with. */
export interface WebhookOptions extends EndpointParts {
  /** Dials only what may be sent to. */
  readonly connect: buildConnector.connector;
  /** Sent as `user-agent`. */
  readonly agent: string;
  readonly leases: Leases;
  /** A clock that is never set back. */
  readonly steadyMs: () => number;
  /** In [0, 1). */
  readonly chance: () => number;
  readonly report: (report: CourierReport) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Opens them; nothing is sent before the courier is woken. */
export function openWebhooks(options: WebhookOptions): Webhooks {
  const { store, nowMs, allowsHost, turns } = options;
  const dispatcher = new Agent({
    connect: options.connect,
    headersTimeout: ATTEMPT_TIMEOUT_MS,
    bodyTimeout: ATTEMPT_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
  });
  const send: SendParts = { dispatcher, agent: options.agent, nowMs };
  const courier = openCourier({ ...options, ...send });
  const stop = new AbortController();

  return {
    store,
    nowMs,
    allowsHost,
    turns,
    courier,
    test: async (at) => {
      const endpoint = await readEndpoint(options, at);
      return sendDelivery(send, testOf(endpoint, nowMs()), stop.signal);
    },
    close: async () => {
      stop.abort();
      await courier.close();
      await dispatcher.destroy();
    },
  };
}

/**
 * Lets dead letters be tried anew, but not those of disabled endpoints, which would be given up again at once. Throws
 * `delivery_not_found` where one was named and is not there, `endpoint_disabled` where only such were named.
 */
export async function replayDead(webhooks: Webhooks, accountId: string, body: ReplayBody): Promise<Replayed> {
  const { webhookId, endpointId } = body;
  if (endpointId !== undefined) {
    const endpoint = await readEndpoint(webhooks, { accountId, id: endpointId });
    if (!endpoint.enabled) throw disabled(endpointId);
  }
  const query = { accountId, eventId: webhookId, endpointId, nowMs: webhooks.nowMs() };
  const replayed = await webhooks.store.replayDeliveries(query);
  if (webhookId !== undefined && replayed.replayed === 0) {
    if (replayed.disabled > 0) throw disabled(webhookId);
    throw new Refusal("delivery_not_found", `There is no dead letter ${shown(webhookId)} for this key.`);
  }
  return replayed;
}

function disabled(named: string): Refusal {
  return new Refusal(
    "endpoint_disabled",
    `The endpoint of ${shown(named)} is disabled, nothing is sent to it.`,
    {
      hint: "Enable it first: PUT /v1/webhooks/<id> with enabled true.",
    },
  );
}

function testOf(endpoint: Endpoint, nowMs: number): Message {
  const type = "webhook.test";
  const data = { endpointId: endpoint.id };
  return {
    target: { url: endpoint.url, secrets: endpoint.secrets, headers: {} },
    eventId: `msg_${randomUUID().replaceAll("-", "")}`,
    body: JSON.stringify({ type, timestamp: new Date(nowMs).toISOString(), data }),
  };
}
