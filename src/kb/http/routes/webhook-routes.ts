import type { FastifyInstance, FastifyRequest } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import {
  DeadAnswer,
  DeadQuery,
  EndpointAnswer,
  EndpointBody,
  EndpointChangeBody,
  EndpointsAnswer,
  NewEndpointAnswer,
  QueuesAnswer,
  ReplayAnswer,
  ReplayBody,
  RotateSecretBody,
  TestAnswer,
  type DeadRecord,
  type EndpointRecord,
} from "../../../wire/webhook.ts";
import type { QueueFigures } from "../../../wire/webhook.ts";
import type { QuestionFigures } from "../../chat/job-runner.ts";
import type { DeadDelivery, Endpoint, EndpointKey } from "../../store/webhooks.ts";
import {
  changeEndpoint,
  createEndpoint,
  readEndpoint,
  removeEndpoint,
  rotateSecret,
} from "../../webhooks/endpoints.ts";
import { replayDead, type Webhooks } from "../../webhooks/webhooks.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody, readInput } from "../body/validate.ts";

const TAG = "Webhooks";

/** URL of the operations on one endpoint. */
const ONE = `${ROUTES.webhooks}/:id`;
/** URL of the operations on dead letters. */
const DEAD = `${ROUTES.webhooks}/dead`;

/** Adds the operations on endpoints of the caller's account and their dead letters (additions). */
export function addWebhookRoutes(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
  addEndpointRoutes(server, parts, webhooks);
  addTrialRoutes(server, parts, webhooks);
  addDeadRoutes(server, parts, webhooks);
}

/** Adds create, list, read, change and remove. */
function addEndpointRoutes(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.webhooks,
    scope: "admin",
    doc: {
      summary: "Registers an endpoint for events; its signing secret is shown only this once.",
      tag: TAG,
      body: EndpointBody,
      answers: { 201: NewEndpointAnswer },
    },
    handle: async (request, accountId) => {
      const made = await createEndpoint(webhooks, accountId, readBody(EndpointBody, request.body));
      return answer(201, "Endpoint created successfully", {
        ...recordOf(made.endpoint),
        secret: made.secret,
      });
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.webhooks,
    scope: "admin",
    doc: { summary: "Lists the endpoints of the account.", tag: TAG, answers: { 200: EndpointsAnswer } },
    handle: async (_request, accountId) => {
      const endpoints = await webhooks.records.endpoints(accountId);
      return answer(200, "Endpoints fetched successfully", { endpoints: endpoints.map(recordOf) });
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ONE,
    scope: "admin",
    doc: { summary: "Returns one endpoint.", tag: TAG, answers: { 200: EndpointAnswer } },
    handle: async (request, accountId) => {
      const endpoint = await readEndpoint(webhooks, keyOf(request, accountId));
      return answer(200, "Endpoint fetched successfully", recordOf(endpoint));
    },
  });

  addOperation(server, parts, {
    method: "PUT",
    url: ONE,
    scope: "admin",
    doc: {
      summary: "Changes, disables or enables an endpoint.",
      tag: TAG,
      body: EndpointChangeBody,
      answers: { 200: EndpointAnswer },
    },
    handle: async (request, accountId) => {
      const body = readBody(EndpointChangeBody, request.body);
      const endpoint = await changeEndpoint(webhooks, keyOf(request, accountId), body);
      return answer(200, "Endpoint updated successfully", recordOf(endpoint));
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: ONE,
    scope: "admin",
    doc: {
      summary: "Removes an endpoint with all its deliveries.",
      tag: TAG,
      answers: { 200: EndpointAnswer },
    },
    handle: async (request, accountId) => {
      const endpoint = await removeEndpoint(webhooks, keyOf(request, accountId));
      return answer(200, "Endpoint deleted successfully", recordOf(endpoint));
    },
  });
}

/** Adds the test message and the change of the signing secret. */
function addTrialRoutes(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
  addOperation(server, parts, {
    method: "POST",
    url: `${ONE}/test`,
    scope: "admin",
    doc: {
      summary: "Sends a test message at once and returns the outcome.",
      tag: TAG,
      answers: { 200: TestAnswer },
    },
    handle: async (request, accountId) => {
      const attempt = await webhooks.test(keyOf(request, accountId));
      return attempt.kind === "arrived"
        ? answer(200, "The test message arrived", { arrived: true, problem: null })
        : answer(200, "The test message did not arrive", { arrived: false, problem: attempt.problem });
    },
  });

  addOperation(server, parts, {
    method: "POST",
    url: `${ONE}/rotate`,
    scope: "admin",
    doc: {
      summary: "Replaces the signing secret; the previous one also signs during the overlap.",
      tag: TAG,
      body: RotateSecretBody,
      answers: { 201: NewEndpointAnswer },
    },
    handle: async (request, accountId) => {
      const body = readBody(RotateSecretBody, request.body ?? {});
      const { endpoint, secret } = await rotateSecret(webhooks, keyOf(request, accountId), body);
      return answer(201, "Secret rotated successfully", { ...recordOf(endpoint), secret });
    },
  });
}

/** Adds the list of dead letters and their replay. */
function addDeadRoutes(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
  addOperation(server, parts, {
    method: "GET",
    url: DEAD,
    scope: "admin",
    doc: {
      summary: "Lists messages that failed for good, newest first.",
      tag: TAG,
      query: DeadQuery,
      answers: { 200: DeadAnswer },
    },
    handle: async (request, accountId) => {
      const { limit, cursor } = readInput(DeadQuery, request.query);
      const page = await webhooks.records.deadDeliveries({
        accountId,
        beforeNumber: cursor,
        limit: limit + 1,
      });
      const shown = page.slice(0, limit);
      const nextCursor = page.length > limit ? String(shown.at(-1)?.number ?? "") : null;
      return answer(200, "Dead letters fetched successfully", { dead: shown.map(deadOf), nextCursor });
    },
  });

  addOperation(server, parts, {
    method: "POST",
    url: `${DEAD}/replay`,
    scope: "admin",
    doc: {
      summary: "Sends dead letters again: one, those of an endpoint, or all.",
      tag: TAG,
      body: ReplayBody,
      answers: { 200: ReplayAnswer },
    },
    handle: async (request, accountId) => {
      const body = readBody(ReplayBody, request.body ?? {});
      const { replayed, disabled } = await replayDead(webhooks, accountId, body);
      const left = disabled === 0 ? "" : `; ${disabled} of disabled endpoints stay as they are`;
      const data = { replayed, ...(disabled === 0 ? {} : { disabled }) };
      return answer(200, `Dead letters wait to be sent again${left}`, data);
    },
  });
}

/** Adds the figures of the queues of the caller's account (an addition). */
export function addQueuesRoute(
  server: FastifyInstance,
  parts: HttpParts,
  queuesOf: (accountId: string) => Promise<QueueFigures>,
): void {
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.queues,
    scope: "read",
    doc: {
      summary:
        "Returns the account's queues: documents to be ingested, questions to be answered, messages to be sent.",
      tag: "Service",
      answers: { 200: QueuesAnswer },
    },
    handle: async (_request, accountId) =>
      answer(200, "Queues fetched successfully", await queuesOf(accountId)),
  });
}

/** Returns a function that reads the queues of an account. */
export function queueReader(
  { queue, records }: HttpParts["kb"],
  questionsOf: (accountId: string) => Promise<QuestionFigures>,
): (accountId: string) => Promise<QueueFigures> {
  return async (accountId) => {
    const [documents, failed, messages, endpoints, questions] = await Promise.all([
      queue.figures("ingest", accountId),
      records.failedResources(accountId),
      queue.figures("webhook", accountId),
      records.endpoints(accountId),
      questionsOf(accountId),
    ]);
    return {
      ingest: queueOf({ ...documents, failed }),
      webhooks: { endpoints: endpoints.length, waiting: messages.waiting, dead: messages.dead },
      questions: queueOf(questions),
    };
  };
}

function keyOf(request: FastifyRequest, accountId: string): EndpointKey {
  return { accountId, id: idOf(request) };
}

function queueOf({ waiting, oldestMs, failed }: Omit<QuestionFigures, "dead">) {
  return { waiting, oldestAt: oldestMs === null ? null : new Date(oldestMs).toISOString(), failed };
}

function recordOf(endpoint: Endpoint): EndpointRecord {
  const { id, accountId: _account, secrets: _secrets, events, ...rest } = endpoint;
  return { _id: id, ...rest, events: [...events] };
}

function deadOf(delivery: DeadDelivery): DeadRecord {
  return {
    webhookId: delivery.eventId,
    endpointId: delivery.endpointId,
    url: delivery.url,
    type: delivery.type,
    attempts: delivery.attempts,
    problem: delivery.problem,
    createdAt: new Date(delivery.createdMs).toISOString(),
  };
}
