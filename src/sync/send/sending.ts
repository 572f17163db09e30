import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { Reply } from "./remote/answer.ts";
import type { DocumentFields, NewResource } from "./remote/resource-requests.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import type { Outgoing } from "./prepare.ts";

/** What changes from one attempt to send a document to the next. */
export interface Sending {
  /** Idempotency key. The same for every attempt, so that the service carries out one of them. */
  key: string;
  /** The address of the file's bytes, once they are uploaded: only the rest is sent again. */
  fileUrl: string | undefined;
  /** The intent of a create or replace; undefined: an update or move of the row's resource. */
  intent: CreateIntent | undefined;
  /** An update may have taken effect without an answer. */
  isUnanswered: boolean;
  /** 404s to an update. */
  goneAnswers: number;
  /** An answer has shown the earlier text. One may come from a replica that lags. */
  wasLost?: boolean;
  /** The service repeated an answer that cannot be this create's. */
  wasPast?: boolean;
}

/** The result of an attempt to send a document. */
export type Sent =
  /** The service has it, and the ledger says so. */
  | { readonly kind: "done" }
  /** Nothing is left to do, although the service did not take this version. */
  | { readonly kind: "ended" }
  /** Something happened to the file: it is checked again. */
  | { readonly kind: "dropped" }
  /** The service does not accept it. `failedId`: the resource that it made for it nevertheless. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string; readonly failedId?: string }
  /** It waits. By default longer with each failure. */
  | { readonly kind: "parked"; readonly code: string; readonly message: string; readonly restMs?: number };

/**
 * Makes a document ready to be sent: uploads the file if it is one, and waits until it is known whether the service takes the
 * locations of a text. Returns the resource's address; empty: it has none, or its own stays.
 */
export async function prepareBody(
  context: ActionContext,
  source: ActionSource,
  { action, document, observed }: Outgoing,
  sending: Sending,
): Promise<Reply<string> | { readonly kind: "torn" }> {
  if (action === "move" || action === "retitle") return { kind: "done", value: "" };
  if (document.kind === "link") return { kind: "done", value: document.url };
  const { capabilities, ledger, signal } = context;
  if (document.kind === "content") {
    const later = document.locations === undefined ? undefined : await capabilities.check(signal);
    return later ?? { kind: "done", value: "" };
  }
  if (sending.fileUrl !== undefined) return { kind: "done", value: sending.fileUrl };
  const { path } = observed.entry;
  const file = {
    root: source.root,
    path,
    name: basename(path),
    sizeBytes: observed.entry.sizeBytes,
    hash: observed.hash,
    mediaType: document.mediaType,
  };
  const uploaded = await context.remote.upload(file, `${sending.key}-file`, signal, context.contentKind);
  if (uploaded.kind !== "done") return uploaded;
  sending.fileUrl = uploaded.value;
  const { intent } = sending;
  // A create that is resumed after a crash need not upload the bytes again.
  if (intent !== undefined) await ledger.write(() => ledger.intents.setFileUrl(intent.id, uploaded.value));
  return uploaded;
}

/** Returns what is sent of a document. A move sends title, description and metadata. */
export function fieldsOf(
  { capabilities }: Pick<ActionContext, "capabilities">,
  { action, document, metadata }: Outgoing,
  url: string,
): DocumentFields & Pick<NewResource, "description"> {
  const { title, description } = document.recipe;
  const named = { title, description, ...(metadata !== undefined && { metadata }) };
  if (action === "move" || action === "retitle") return named;
  if (document.kind !== "content") return { ...named, url };
  const { content, locations } = document;
  return {
    ...named,
    content,
    ...(locations !== undefined && capabilities.takesLocations() && { locations }),
  };
}

/** Has the next attempt count as another request: a service may repeat its answer under the same key. */
export async function renewKey({ ledger }: Pick<ActionContext, "ledger">, sending: Sending): Promise<void> {
  const { intent } = sending;
  sending.key = randomUUID();
  if (intent !== undefined) await ledger.write(() => ledger.intents.setKey(intent.id, sending.key));
}

/** Returns the refusal that a reply stands for where there is no resource yet. */
export function refusalOf(
  reply: { readonly kind: "gone" } | Extract<Sent, { readonly kind: "refused" }>,
): Extract<Sent, { readonly kind: "refused" }> {
  return reply.kind === "gone" ? { kind: "refused", code: "gone", message: "not found" } : reply;
}
