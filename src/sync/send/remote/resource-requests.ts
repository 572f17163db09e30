import { z } from "zod";
import type { LocatedText } from "../../../formats/markup/located-text.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import type { Settings, Tier } from "../../../wire/primitives.ts";
import type { ResourceRecord } from "../../../wire/resource.ts";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../../wire/routes.ts";
import { header, readAnswer, type RawAnswer, type Reply } from "./answer.ts";
import { RecordAnswer, shownOf, withRecord } from "./record.ts";
import type { ContentKind } from "./request-limit.ts";
import type { HostRequest, MayLeave, Transport, TransportOptions } from "./transport.ts";

/** The fields of a document. An update changes only those that are given. */
export interface DocumentFields {
  readonly title: string;
  readonly description?: string;
  /** A document has a content or an address. */
  readonly content?: string;
  readonly url?: string;
  /** The locations of the content, for services that take them. */
  readonly locations?: LocatedText["locations"];
  /** Replaces all metadata. For services that take it. */
  readonly metadata?: UserMetadata | undefined;
}

/** The fields of a create. */
export interface NewResource extends DocumentFields {
  readonly description: string;
  readonly settings: Settings;
  readonly tier: Tier;
  readonly ownerId: string;
}

/** The service's progress with a request that it accepted. */
export interface Taken {
  /** The service has stored the document durably and is still processing it: the resource's state shows the end. */
  readonly isInFlight: boolean;
  /** Parts of the document that the service could not read, in its words, if it reports them. */
  readonly warning: string | undefined;
  /** The resource as stored, as far as the answer shows it. */
  readonly record: AnsweredRecord;
}

/** The fields of a resource that an answer shows; others are empty or absent. */
export type AnsweredRecord = {
  readonly [F in "_id" | "title" | "description" | "content" | "url" | "updatedAt" | "metadata"]?:
    | ResourceRecord[F]
    | undefined;
};

/** Longest warning that is stored. It names a few pages. */
const WARNING_CHARS_MAX = 2000;

/** The service's report on parts of a document that it could not read. */
export function warningOf({ metadata }: Pick<ResourceRecord, "metadata">): string | undefined {
  return metadata?.warning?.slice(0, WARNING_CHARS_MAX);
}

const APPLIED_HEADER = "preference-applied";
const ACCEPTED_STATUS = 202;

const Undeleted = z.object({ isDeleted: z.literal(false) });

/** Opens these requests over a transport. */
export function resourceRequests(transport: Transport, options: RecordOptions) {
  const { attempt, send, auth, patient } = transport;
  const { onOddField = () => undefined } = options;
  const ask = async (request: HostRequest, signal: AbortSignal) =>
    readAnswer(await send("db", request, signal), RecordAnswer, "resource");
  const record = async (request: HostRequest, signal: AbortSignal): Promise<Reply<ResourceRecord>> =>
    withRecord(await ask(request, signal), onOddField);
  return {
    ...writeRequests(transport, options),

    /** Returns the record of a resource. An addition, which comes with asynchronous answers; other services may lack it. */
    read: (docId: string, signal: AbortSignal): Promise<Reply<ResourceRecord>> =>
      attempt("read", signal, () => record({ method: "GET", path: pathOf(docId), headers: auth }, signal)),

    delete: (docId: string, signal: AbortSignal, mayLeave?: MayLeave): Promise<Reply<unknown>> =>
      attempt(
        "delete",
        signal,
        async () => {
          const path = pathOf(docId);
          const answer = await send("db", { method: "DELETE", path, headers: auth }, signal);
          const reply = readAnswer(answer, RecordAnswer, "resource");
          if (reply.kind !== "done" || !Undeleted.safeParse(reply.value.data).success) return reply;
          const message =
            "the service answers with success and a document that is not deleted (isDeleted: false)";
          return { kind: "refused", code: "not_deleted", message };
        },
        { mayLeave },
      ),

    /** Removes a resource for good, live or deleted. An addition: other services delete it. */
    purge: (docId: string, signal: AbortSignal): Promise<Reply<unknown>> =>
      attempt("purge", signal, () =>
        ask({ method: "DELETE", path: `${pathOf(docId)}?purge=true`, headers: auth }, signal),
      ),

    /**
     * Returns the whole record of a resource that is about to be deleted. In the specification, only the answers of update
     * and delete show a resource by its id, so this updates the resource to the title that it has.
     */
    take: (docId: string, title: string, signal: AbortSignal): Promise<Reply<ResourceRecord>> =>
      attempt("take", signal, async () => {
        const path = pathOf(docId);
        const body = JSON.stringify({ title });
        const reply = await ask({ method: "PUT", path, headers: patient, body }, signal);
        if (reply.kind !== "done") return reply;
        const value = shownOf(reply.value.data, docId, onOddField);
        const taken: Reply<ResourceRecord> = { kind: "done", value };
        if (typeof value.content === "string") return taken;
        // A service that is still working on an earlier change answers without a text. Its record shows the stored one.
        const shown = await record({ method: "GET", path, headers: auth }, signal);
        return shown.kind === "done" ? shown : taken;
      }),
  };
}

/** Opens the requests that send a document. */
function writeRequests(
  { attempt, send, patient }: Transport,
  { onOddField = () => undefined }: RecordOptions,
) {
  return {
    create: (
      resource: NewResource,
      key: string,
      signal: AbortSignal,
      mayLeave?: MayLeave,
      kind: ContentKind = "content",
    ): Promise<Reply<ResourceRecord & Taken>> =>
      attempt(
        "create",
        signal,
        async () => {
          const { title, description, settings, tier, ownerId, ...rest } = resource;
          const scope = { collection_details: tier, owner_id: ownerId };
          const body = JSON.stringify({ title, description, settings, ...scope, ...rest });
          const headers = { ...patient, [IDEMPOTENCY_HEADER]: key };
          const request = { method: "POST", path: ROUTES.resource, headers, body };
          const answer = await send("db", request, signal);
          const reply = withRecord(readAnswer(answer, RecordAnswer, "address"), onOddField);
          return reply.kind === "done"
            ? { kind: "done", value: { ...reply.value, ...takenOf(answer, reply.value) } }
            : reply;
        },
        { mayLeave, kind },
      ),

    /** With the `key` of an earlier attempt, the service carries out the update once. */
    update: (
      docId: string,
      change: DocumentFields,
      signal: AbortSignal,
      key?: string,
      mayLeave?: MayLeave,
      kind: ContentKind = "content",
    ): Promise<Reply<Taken>> =>
      attempt(
        "update",
        signal,
        async () => {
          const path = pathOf(docId);
          const body = JSON.stringify(change);
          const headers = key === undefined ? patient : { ...patient, [IDEMPOTENCY_HEADER]: key };
          const answer = await send("db", { method: "PUT", path, headers, body }, signal);
          const reply = readAnswer(answer, RecordAnswer, "resource");
          return reply.kind === "done"
            ? { kind: "done", value: takenOf(answer, shownOf(reply.value.data, docId, onOddField)) }
            : reply;
        },
        { mayLeave, kind: change.content === undefined && change.url === undefined ? "control" : kind },
      ),
  };
}

type RecordOptions = Pick<TransportOptions, "onOddField">;

function pathOf(docId: string): string {
  return `${ROUTES.resource}/${encodeURIComponent(docId)}`;
}

/**
 * Only a service that honours the preference shows whether it is done: in a header, which a proxy may drop, or in the
 * record's state.
 */
function takenOf(answer: RawAnswer, record: AnsweredRecord): Taken {
  const applied = header(answer, APPLIED_HEADER) ?? "";
  const isAsync = /(^|[\s,])respond-async\b/i.test(applied) || record.metadata?.status === "queued";
  const isInFlight = answer.status === ACCEPTED_STATUS && isAsync;
  return { isInFlight, warning: warningOf(record), record };
}
