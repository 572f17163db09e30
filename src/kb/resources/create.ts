import { newHexId } from "../../lib/ids.ts";
import { DEFAULT_SETTINGS } from "../../wire/primitives.ts";
import type { CreateBody } from "../../wire/resource.ts";
import type { NewResource, Origin, Resource } from "../store/resources.ts";
import { noteOf, type CreateRequest } from "./request-context.ts";
import { fileTokenOf, usingFile } from "./file-token.ts";
import { requesterOf, nowIso, type KnowledgeBase, type OwnerKey } from "./knowledge-base.ts";
import { newJob } from "./new-job.ts";
import { Refusal } from "./refusal.ts";
import { contentSource, refuseAddress, refuseLocations, urlSource } from "./source.ts";

/**
 * Operation 2. Resolves when the resource is searchable and durable. If it throws, no part of the resource exists. Two live
 * resources may have the same title.
 */
export function createResource(
  kb: KnowledgeBase,
  { accountId, body, context }: CreateRequest,
): Promise<Resource> {
  const create = async (): Promise<Resource> => {
    const record = recordOf(kb, accountId, body);
    const source = await sourceOf(kb, record, body);
    const { warning, ...stored } = source;
    const chunking = await kb.ingest.chunk(source.content, record.settings, {
      warning,
      requester: requesterOf(kb, record),
    });
    return kb.records.createResource(
      { ...record, ...stored, fileToken: fileTokenOf(kb, source.url) },
      chunking,
      noteOf(context, 201, kb.nowMs()),
    );
  };
  return usingFile(kb, body.url, create);
}

/**
 * Operation 2 as a background job. Checks what it can without reading the document, then creates the resource in the state
 * `queued`, with neither text nor chunks. Throws `queue_full`.
 */
export function queueCreate(
  kb: KnowledgeBase,
  { accountId, body, context }: CreateRequest,
): Promise<Resource> {
  const { url, content, locations } = body;
  const queue = async (): Promise<Resource> => {
    const fileToken = fileTokenOf(kb, url);
    refuseBothOrNeither(body);
    if (content !== undefined) contentSource(kb, body);
    if (url !== undefined) await refuseAddress(kb, accountId, url);
    return kb.records.enqueueCreate(
      {
        ...recordOf(kb, accountId, body),
        origin: originOf(url, fileToken),
        url: url ?? null,
        content: "",
        fileToken,
      },
      newJob(kb, { update: { url, content, locations }, completesCreate: true }, fileToken),
      noteOf(context, 202, kb.nowMs()),
    );
  };
  return usingFile(kb, url, queue);
}

function originOf(url: string | undefined, fileToken: string | null): Origin {
  if (url === undefined) return "content";
  return fileToken === null ? "link" : "file";
}

function recordOf(
  kb: KnowledgeBase,
  accountId: string,
  body: CreateBody,
): Omit<NewResource, "origin" | "url" | "content"> {
  return {
    id: newHexId(kb.nowMs()),
    accountId,
    tier: body.collection_details,
    ownerId: body.owner_id?.toWellFormed() ?? accountId,
    title: body.title.toWellFormed(),
    description: body.description.toWellFormed(),
    settings: body.settings ?? DEFAULT_SETTINGS,
    createdAt: nowIso(kb),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
  };
}

function sourceOf(kb: KnowledgeBase, owner: OwnerKey, body: CreateBody): ReturnType<typeof urlSource> {
  refuseBothOrNeither(body);
  const { url } = body;
  return url === undefined ? Promise.resolve(contentSource(kb, body)) : urlSource(kb, owner, url);
}

function refuseBothOrNeither(body: CreateBody): void {
  const { url, content } = body;
  refuseLocations(body);
  if ((url === undefined) !== (content === undefined)) return;
  const hint = "Send url for an uploaded file or a link, content for raw text.";
  throw url === undefined
    ? new Refusal("invalid_field", "content: expected one of url and content, got neither", {
        field: "content",
        hint,
      })
    : new Refusal("invalid_field", "url: expected either url or content, got both", { field: "url", hint });
}
