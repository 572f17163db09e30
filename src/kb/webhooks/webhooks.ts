import { randomUUID } from "node:crypto";
import { Agent } from "undici";
import type { buildConnector } from "undici";
import type { Endpoint, EndpointKey } from "../store/webhooks.ts";
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
  const { records, nowMs, allowsHost } = options;
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

function testOf(endpoint: Endpoint, nowMs: number): Message {
  const type = "webhook.test";
  const data = { endpointId: endpoint.id };
  return {
    target: { url: endpoint.url, secret: endpoint.secret, headers: {} },
    eventId: `msg_${randomUUID().replaceAll("-", "")}`,
    body: JSON.stringify({ type, timestamp: new Date(nowMs).toISOString(), data }),
  };
}
