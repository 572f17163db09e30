import type { FastifyInstance } from "fastify";
import { EraseOwnerBody, EraseResourcesBody, ErasureAnswer } from "../../../wire/erasure.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { eraseOwner, eraseResources } from "../../resources/erase.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Resources";

/** Adds the erasure of resources and of an owner (additions). */
export function addEraseRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { kb } = parts;
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.eraseResources,
    scope: "write",
    doc: {
      summary: "Erases resources, live or deleted, with everything that was made from them.",
      tag: TAG,
      body: EraseResourcesBody,
      answers: { 200: ErasureAnswer },
    },
    handle: async (request, accountId) => {
      const { resource_ids: ids } = readBody(EraseResourcesBody, request.body);
      return answer(200, "Erased", await eraseResources(kb, accountId, [...new Set(ids)]));
    },
  });
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.eraseOwner,
    scope: "admin",
    doc: {
      summary: "Erases all resources of an owner, and the owner's name.",
      tag: TAG,
      body: EraseOwnerBody,
      answers: { 200: ErasureAnswer },
    },
    handle: async (request, accountId) => {
      const { owner_id: ownerId } = readBody(EraseOwnerBody, request.body);
      return answer(200, "Erased", await eraseOwner(kb, { accountId, ownerId: ownerId.toWellFormed() }));
    },
  });
}
