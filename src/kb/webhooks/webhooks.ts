import { randomUUID } from "node:crypto";
import { Agent } from "undici";
import type { buildConnector } from "undici";
import type { ReplayBody } from "../../wire/webhook.ts";
import { Refusal, shown } from "../resources/refusal.ts";
import type { Endpoint, EndpointKey, Replayed } from "../store/webhooks.ts";
import { openDeliveryRunner } from "./delivery-runner.ts";
import type { DeliveryRunner, DeliveryRunnerParts } from "./delivery-runner.ts";
import { readEndpoint } from "./endpoints.ts";
import type { EndpointParts } from "./endpoints.ts";
import { ATTEMPT_TIMEOUT_MS, sendDelivery } from "./send.ts";
import type { Attempt, Message, SendParts } from "./send.ts";

/** Idle connections stay open this long, because messages of one change follow each other. */
const KEEP_ALIVE_MS = 10_000;
/** Most bytes of an answer's headers. */
const HEADER_BYTES_MAX = 16 * 1024;

/** Endpoints, and the runner that delivers messages to them and to addresses given with a message. */
export interface Webhooks extends EndpointParts {
  readonly deliveries: DeliveryRunner;
  /** Sends a message of type `webhook.test` at once, without the queue, and returns the result. */
  test(at: EndpointKey): Promise<Attempt>;
  close(): Promise<void>;
}

/** The dependencies of webhooks. */
export interface WebhookOptions
  extends EndpointParts, Omit<DeliveryRunnerParts, "records" | "dispatcher" | "nowMs"> {
  /** Dials only allowed addresses. */
  readonly connect: buildConnector.connector;
}

/** Opens the webhooks. Sends nothing before the delivery runner is woken. */
export function openWebhooks(options: WebhookOptions): Webhooks {
  const { records, nowMs, allowsHost, turns } = options;
  const dispatcher = new Agent({
    connect: options.connect,
    headersTimeout: ATTEMPT_TIMEOUT_MS,
    bodyTimeout: ATTEMPT_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
  });
  const send: SendParts = { dispatcher, agent: options.agent, nowMs };
  const deliveries = openDeliveryRunner({ ...options, ...send });
  const stop = new AbortController();

  return {
    records,
    nowMs,
    allowsHost,
    turns,
    deliveries,
    test: async (at) => {
      const endpoint = await readEndpoint(options, at);
      return sendDelivery(send, testOf(endpoint, nowMs()), stop.signal);
    },
    close: async () => {
      stop.abort();
      await deliveries.close();
      await dispatcher.destroy();
    },
  };
}

/**
 * Queues dead letters again, except those of disabled endpoints, which would fail again at once. Throws `delivery_not_found` if
 * a named message does not exist, and `endpoint_disabled` if all named messages belong to disabled endpoints.
 */
export async function replayDead(webhooks: Webhooks, accountId: string, body: ReplayBody): Promise<Replayed> {
  const { webhookId, endpointId } = body;
  if (endpointId !== undefined) {
    const endpoint = await readEndpoint(webhooks, { accountId, id: endpointId });
    if (!endpoint.enabled) throw disabled(endpointId);
  }
  const query = { accountId, eventId: webhookId, endpointId, nowMs: webhooks.nowMs() };
  const replayed = await webhooks.records.replayDeliveries(query);
  if (webhookId !== undefined && replayed.replayed === 0) {
    if (replayed.disabled > 0) throw disabled(webhookId);
    throw new Refusal("delivery_not_found", `This key has no dead letter ${shown(webhookId)}.`);
  }
  return replayed;
}

function disabled(named: string): Refusal {
  return new Refusal(
    "endpoint_disabled",
    `The endpoint of ${shown(named)} is disabled and receives no messages.`,
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
