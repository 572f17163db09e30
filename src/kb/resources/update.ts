import { readingWords } from "../ingest/extract/unread-words.ts";
import { codeOf } from "../../lib/failure.ts";
import type { Settings } from "../../wire/primitives.ts";
import type { SettingsChange, UpdateBody } from "../../wire/resource.ts";
import type { SameTransaction } from "../store/request-note.ts";
import type { Chunking } from "../store/chunks.ts";
import type { Resource, ResourceChange, ResourceKey } from "../store/resources.ts";
import type { JobBody } from "../store/rows/job-body.ts";
import { refuseUnexpected, type RequestContext } from "./request-context.ts";
import { fileTokenOf } from "./file-token.ts";
import type { PartlyRead } from "../ingest/extract/extract.ts";
import { requesterOf, nowIso, type KnowledgeBase } from "./knowledge-base.ts";
import { partText } from "./part.ts";
import { invalidField, noResource, Refusal, shown } from "./refusal.ts";
import { contentSource, refuseAddress, refuseLocations, textChange, urlSource } from "./source.ts";
import type { Source } from "./source.ts";

/** What is known of a change besides its body. */
type UpdateContext = RequestContext & Pick<JobBody, "completesCreate">;

/** Tries of a change. Another process has written a change meanwhile each time, so work goes on. */
const TRIES_MAX = 5;

/**
 * Changes a resource; the caller holds its turn. Resolves when the new state is searchable and durable; readers see the old version
 * until then, or of a queued PDF a part of the new one (`partText`). A change of only title and description keeps the chunks. Content, url and settings always chunk again, even if they
 * are equal, so that `version` counts the caller's requests.
 */
export function applyUpdate(
  kb: KnowledgeBase,
  at: ResourceKey,
  body: UpdateBody,
  sameTransaction: SameTransaction,
  context: UpdateContext = {},
): Promise<Resource> {
  return repeatIfChanged(() => tryUpdate(kb, at, body, sameTransaction, context));
}

/**
 * Runs work again whose write found that another process had changed the resource since the work read it. In a store of one process that
 * never happens: the caller holds the resource's turn.
 */
async function repeatIfChanged<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== "resource_changed") throw error;
      if (tries < TRIES_MAX) continue;
      throw new Refusal("ingest_busy", "Other changes of this resource came in between each time.", {
        cause: error,
      });
    }
  }
}

async function tryUpdate(
  kb: KnowledgeBase,
  { accountId, id }: ResourceKey,
  body: UpdateBody,
  sameTransaction: SameTransaction,
  context: UpdateContext,
): Promise<Resource> {
  const before = await kb.records.resource({ accountId, id });
  if (before === undefined) throw noResource(id);
  const expected = refuseUnexpected(context, before);
  refuseNothing(body);
  context.makeRoom?.(before);
  const settings = body.settings === undefined ? undefined : newSettings(before.settings, body.settings);

  let base: Pick<Resource, "version" | "title"> = before;
  const write = async (source: Source | undefined, isPart: boolean): Promise<Resource> => {
    const chunking = await chunkAgain(kb, before, settings, source);
    const change = changeOf({ accountId, id }, body, settings, source, nowIso(kb));
    const fileToken = source?.url === undefined ? {} : { fileToken: fileTokenOf(kb, source.url) };
    // The link's text is the stored one, so an earlier failure to read it no longer applies.
    const clearsError = body.url !== undefined && source === undefined;
    // Other changes do not depend on what was read.
    const basedOn =
      chunking === undefined && body.url === undefined
        ? {}
        : { basedOn: { version: base.version, title: base.title } };
    const after = await kb.records.updateResource(
      {
        ...change,
        ...fileToken,
        ...expected,
        ...basedOn,
        clearsError,
        completesCreate: context.completesCreate === true,
      },
      chunking,
      { ...sameTransaction, isPart },
    );
    if (after === undefined) throw noResource(id);
    base = after;
    return after;
  };
  const { job } = sameTransaction;
  const onPart = async (read: PartlyRead): Promise<void> => {
    if (read.texts.every((text) => text === "")) {
      const words = readingWords(read.reading, before.version > 0);
      if (job !== undefined) await kb.queue.noteReading(job, words);
      return;
    }
    const part = await partText(kb, before, read, context.completesCreate === true);
    if (part === undefined) return;
    // An earlier attempt wrote it. Since a newer change the document is `queued`.
    const isSame = part.text === before.content && part.warning === before.warning;
    if (isSame && before.status === "chunked") return;
    const { text: content, ...about } = part;
    await write({ origin: before.origin, url: body.url ?? null, content, ...about }, true);
  };
  const source = await newSource(job === undefined ? kb : { ...kb, onPart }, before, body);
  // A part that was written is replaced in any case.
  return write(base === before && isUnchangedLink(before, source) ? undefined : source, false);
}

/** Throws for a change that is invalid whatever the new text is. */
export async function refuseUpdate(kb: KnowledgeBase, before: Resource, body: UpdateBody): Promise<void> {
  refuseNothing(body);
  if (body.settings !== undefined) newSettings(before.settings, body.settings);
  refuseForeignSource(kb, before, body);
  if (body.content !== undefined) contentSource(kb, body);
  if (body.url !== undefined) await refuseAddress(kb, before.accountId, body.url);
}

/** Merges the settings of a request into the existing ones. */
function newSettings(before: Settings, change: SettingsChange): Settings {
  const settings: Settings = {
    strategy: change.strategy ?? before.strategy,
    chunkSize: change.chunkSize ?? before.chunkSize,
    chunkOverlap: change.chunkOverlap ?? before.chunkOverlap,
  };
  if (settings.chunkOverlap >= settings.chunkSize) {
    throw invalidField(
      "settings.chunkOverlap",
      `expected an integer below chunkSize ${settings.chunkSize}, got ${settings.chunkOverlap}`,
      "A setting that is not sent keeps its value: send both.",
    );
  }
  return settings;
}

function refuseNothing(body: UpdateBody): void {
  if (Object.values(body).some((value) => value !== undefined)) return;
  throw new Refusal("invalid_body", "The body names nothing to change.", {
    hint: "Send at least one of title, description, content, url, settings and metadata.",
  });
}

/** Reads the new text, which must match the resource's origin. Undefined: the request has neither content nor url. */
async function newSource(kb: KnowledgeBase, before: Resource, body: UpdateBody): Promise<Source | undefined> {
  refuseForeignSource(kb, before, body);
  const { content, url } = body;
  if (url !== undefined) return urlSource(kb, before, url);
  return content === undefined ? undefined : contentSource(kb, body);
}

/** Whether a link has the text that it had, so that the resource keeps its version. One that was never read has none. */
function isUnchangedLink(before: Resource, source: Source | undefined): boolean {
  if (source?.origin !== "link" || before.version === 0) return false;
  return source.content === before.content && source.warning === (before.warning ?? undefined);
}

/** Throws for text or an address that a resource of this origin does not accept. */
function refuseForeignSource(kb: KnowledgeBase, before: Resource, body: UpdateBody): void {
  const { content, url } = body;
  refuseLocations(body);
  if (content !== undefined && before.origin !== "content") {
    throw invalidField(
      "content",
      `this is a ${before.origin} resource, whose text comes from its url`,
      "Send url instead of content.",
    );
  }
  if (url === undefined) return;
  if (before.origin === "content") {
    throw invalidField("url", "this is a content resource, which has no url", "Send content instead of url.");
  }
  if (before.origin === "file" && !isOurs(kb, url)) {
    throw invalidField(
      "url",
      `this is a file resource: expected the file_url of an upload, got ${shown(url)}`,
      "Upload the new file first and send its file_url.",
    );
  }
}

function isOurs(kb: KnowledgeBase, url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && kb.addresses.classify(parsed).kind !== "elsewhere";
}

async function chunkAgain(
  kb: KnowledgeBase,
  before: Resource,
  settings: Settings | undefined,
  source: Source | undefined,
): Promise<Chunking | undefined> {
  // A document without a text keeps its new settings for its first text.
  if (source === undefined && (settings === undefined || before.version === 0)) return undefined;
  const text = source?.content ?? before.content;
  return kb.ingest.chunk(text, settings ?? before.settings, {
    warning: source === undefined ? (before.warning ?? undefined) : source.warning,
    requester: requesterOf(kb, before),
  });
}

function changeOf(
  at: { readonly accountId: string; readonly id: string },
  body: UpdateBody,
  settings: Settings | undefined,
  source: Source | undefined,
  now: string,
): ResourceChange {
  // The requested address is stored even if its text is unchanged.
  const url = (source === undefined ? body.url : source.url) ?? null;
  return {
    ...at,
    nowIso: now,
    ...(body.title === undefined ? {} : { title: body.title.toWellFormed() }),
    ...(body.description === undefined ? {} : { description: body.description.toWellFormed() }),
    ...(settings === undefined ? {} : { settings }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
    ...(source === undefined ? {} : textChange(source)),
    ...(url === null ? {} : { url }),
  };
}
