import type { FastifyInstance, FastifyRequest } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import {
  EndpointAnswer,
  EndpointBody,
  EndpointChangeBody,
  EndpointsAnswer,
  NewEndpointAnswer,
  TestAnswer,
  type EndpointRecord,
} from "../../../wire/webhook.ts";
import type { Endpoint, EndpointKey } from "../../store/webhooks.ts";
import { changeEndpoint, createEndpoint, removeEndpoint } from "../../webhooks/endpoints.ts";
import type { Webhooks } from "../../webhooks/webhooks.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Webhooks";

/** URL of the operations on one endpoint. */
const ONE = `${ROUTES.webhooks}/:id`;

/** Adds the operations on endpoints of the caller's account (additions). */
export function addWebhookRoutes(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
  addEndpointRoutes(server, parts, webhooks);
  addTestRoute(server, parts, webhooks);
}

/** Adds create, list, change and remove. */
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
    method: "PUT",
    url: ONE,
    scope: "admin",
    doc: {
      summary: "Changes, disables or enables an endpoint, or replaces its signing secret.",
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

/** Adds the test message. */
function addTestRoute(server: FastifyInstance, parts: HttpParts, webhooks: Webhooks): void {
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
}

function keyOf(request: FastifyRequest, accountId: string): EndpointKey {
  return { accountId, id: idOf(request) };
}

function recordOf(endpoint: Endpoint): EndpointRecord {
  const { id, accountId: _account, secret: _secret, events, ...rest } = endpoint;
  return { _id: id, ...rest, events: [...events] };
}
