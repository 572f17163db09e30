import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import { CreateBody, DeleteQuery, UpdateBody } from "../../../wire/resource.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { queueUpdate, updateResource } from "../../jobs/change.ts";
import { waitForJobs } from "../../jobs/wait-for-jobs.ts";
import { createResource, queueCreate } from "../../resources/create.ts";
import { textBytes } from "../../resources/list.ts";
import { isQuickCreate, isQuickUpdate, isUnderWay } from "../../resources/quick.ts";
import { readResource } from "../../resources/read.ts";
import { createdRecord, deletedRecord, liveRecord, queuedRecord } from "../../resources/record.ts";
import { purgeResource, removeResource } from "../../resources/remove.ts";
import type { RequestContext } from "../../resources/request-context.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import type { Resource } from "../../store/resources.ts";
import { asyncPreference, etagOf, preconditionOf } from "../body/conditions.ts";
import { readBody, readInput } from "../body/validate.ts";
import type { ResponseShare } from "../limits/response-memory.ts";
import { readStoredAnswer } from "../operation/idempotency.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { recordAnswer, withReachableUrl } from "./resource-answers.ts";
import { RESOURCE_DOCS } from "./resource-docs.ts";

/** The answer before the work is done, recognised by its status and by the record's `metadata.status`. */
const QUEUED = {
  message: "Resource accepted; metadata.status shows when it is searchable",
  status: 202,
} as const;
/** URL of the operations on one resource. */
const ONE = `${ROUTES.resource}/:id`;

/** Adds operations 2, 4 and 5: create, update and delete. */
export function addResourceRoutes(server: FastifyInstance, parts: HttpParts, bodyBytesMax: number): void {
  const { kb } = parts;
  const { created, updated, later, replay } = changeAnswers(parts);
  const isQuick = async (accountId: string, id: string, body: UpdateBody): Promise<boolean> => {
    const before = await kb.records.resource({ accountId, id });
    return before !== undefined && isQuickUpdate(before, body);
  };

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.resource,
    scope: "write",
    doc: RESOURCE_DOCS.create,
    bodyBytesMax,
    replay: replay(created),
    handle: async (request, accountId, context) => {
      const body = readBody(CreateBody, request.body);
      const preference = asyncPreference(request.headers);
      const isNow = preference === undefined || (preference.waitMs > 0 && isQuickCreate(body));
      const create = { accountId, body, context };
      if (isNow) return created(await createResource(kb, create));
      const made = await queueCreate(kb, create);
      return later(await waitForJobs(kb, made, preference.waitMs), created);
    },
  });

  addOperation(server, parts, {
    method: "PUT",
    url: ONE,
    scope: "write",
    doc: RESOURCE_DOCS.update,
    bodyBytesMax,
    replay: replay(updated),
    handle: async (request, accountId, context, share) => {
      const body = readBody(UpdateBody, request.body);
      const id = idOf(request);
      const expected = { ...context, ...preconditioned(request.headers), ...roomFor(share) };
      const update = { accountId, id, body, context: expected };
      const preference = asyncPreference(request.headers);
      const isNow =
        preference === undefined || (preference.waitMs > 0 && (await isQuick(accountId, id, body)));
      if (isNow) return updated(await updateResource(kb, update), share);
      const changed = await queueUpdate(kb, update);
      return later(await waitForJobs(kb, changed, preference.waitMs), (resource) => updated(resource, share));
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: ONE,
    scope: "write",
    doc: RESOURCE_DOCS.remove,
    handle: async (request, accountId, _context, share) => {
      const expected = { ...preconditioned(request.headers), ...roomFor(share) };
      const remove = readInput(DeleteQuery, request.query).purge === "true" ? purgeResource : removeResource;
      const resource = await remove(kb, accountId, idOf(request), expected);
      return recordAnswer(parts, "Resource deleted successfully", resource, share, deletedRecord);
    },
  });
}

/** Makes the answers to creates and updates, finished or queued. */
function changeAnswers(parts: HttpParts) {
  const { kb } = parts;
  const created = (resource: Resource) => ({
    ...answer(201, "Resource created successfully", createdRecord(withReachableUrl(kb, resource))),
    etag: etagOf(resource),
  });
  const updated = (resource: Resource, share: ResponseShare) =>
    recordAnswer(parts, "Resource updated successfully", resource, share, liveRecord);
  const queued = (resource: Resource) => ({
    ...answer(QUEUED.status, QUEUED.message, queuedRecord(withReachableUrl(kb, resource))),
    etag: etagOf(resource),
    headers: { "preference-applied": "respond-async", location: `${ROUTES.resource}/${resource.id}` },
  });
  /** Returns the final answer if the work is done, else the early one, whose status also shows work that failed. */
  const later = <T>(resource: Resource, done: (resource: Resource) => T) =>
    isUnderWay(resource) || resource.status === "error" ? queued(resource) : done(resource);
  /** Returns the answer to a repeated request, by the status of the first one. */
  const replay =
    <T>(done: (resource: Resource, share: ResponseShare) => T) =>
    async (accountId: string, noted: StoredAnswer, share: ResponseShare) => {
      const note = readStoredAnswer(noted);
      if (note.kind !== "resource" && note.kind !== "reference")
        throw new Error("a resource was noted as something else");
      const resource =
        note.kind === "resource" ? note.resource : await readResource(kb, accountId, note.resourceId);
      if (noted.status === QUEUED.status) return queued(resource);
      share.take(textBytes(resource));
      return done(resource, share);
    };
  return { created, updated, later, replay };
}

function preconditioned(headers: IncomingHttpHeaders): RequestContext {
  const precondition = preconditionOf(headers);
  return precondition === undefined ? {} : { precondition };
}

/** Refuses a change before it is made if there is no memory for its answer. */
function roomFor(share: ResponseShare): RequestContext {
  return { makeRoom: (before) => share.take(textBytes(before)) };
}
