import type { Settings } from "../../wire/primitives.ts";
import type { SettingsChange, UpdateBody } from "../../wire/resource.ts";
import type { Chunking, Resource, ResourceChange } from "../store/store.ts";
import { refuseSettingsOfLater } from "./create.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { invalidField, noResource, Refusal, shown } from "./refusal.ts";
import { contentSource, urlSource } from "./source.ts";
import type { Source } from "./source.ts";

/**
 * Operation 4. Resolves when the new state is searchable and durable; readers see the old version until then.
 * Updates of one resource run one after another. Title and description alone keep the chunks as they are; content, url
 * and settings chunk again even when they are what they were, so `version` counts what the caller asked for.
 */
export function updateResource(
  kb: KnowledgeBase,
  accountId: string,
  id: string,
  body: UpdateBody,
): Promise<Resource> {
  return kb.turns.run(`${accountId}/${id}`, async () => {
    const before = await kb.store.resource({ accountId, id });
    if (before === undefined) throw noResource(id);
    refuseNothing(body);
    const settings = body.settings === undefined ? undefined : newSettings(before.settings, body.settings);

    const source = await newSource(kb, accountId, before, body);
    const chunking = await chunkAgain(kb, before, settings, source);
    const after = await kb.store.updateResource(
      changeOf({ accountId, id }, body, settings, source, nowIso(kb)),
      chunking,
    );
    if (after === undefined) throw noResource(id);
    return after;
  });
}

/** What was sent over what is there. */
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
      "What is not sent stays as it is: send both.",
    );
  }
  refuseSettingsOfLater(settings);
  return settings;
}

function refuseNothing(body: UpdateBody): void {
  if (Object.values(body).some((value) => value !== undefined)) return;
  throw new Refusal("invalid_body", "The body names nothing to change.", {
    hint: "Send at least one of title, description, content, url and settings.",
  });
}

/** The new text, checked against what the resource was made from; undefined when neither content nor url came. */
async function newSource(
  kb: KnowledgeBase,
  accountId: string,
  before: Resource,
  { content, url }: UpdateBody,
): Promise<Source | undefined> {
  if (content !== undefined && before.origin !== "content") {
    throw invalidField(
      "content",
      `this is a ${before.origin} resource, whose text comes from its url`,
      "Send url instead of content.",
    );
  }
  if (url === undefined) return content === undefined ? undefined : contentSource(kb, content);
  if (before.origin === "content") {
    throw invalidField("url", "this is a content resource, which has no url", "Send content instead of url.");
  }
  const custom = before.origin === "file" && !isOurs(kb, url);
  if (custom) {
    throw invalidField(
      "url",
      `this is a file resource: expected the file_url of an upload, got ${shown(url)}`,
      "Upload the new file first and send its file_url.",
    );
  }
  const source = await urlSource(kb, accountId, url);
  return source;
}

function isOurs(kb: KnowledgeBase, url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && kb.addresses.place(parsed).kind !== "elsewhere";
}

async function chunkAgain(
  kb: KnowledgeBase,
  before: Resource,
  settings: Settings | undefined,
  source: Source | undefined,
): Promise<Chunking | undefined> {
  if (source === undefined && settings === undefined) return undefined;
  const text = source?.content ?? before.content;
  return kb.ingest.chunk(text, settings ?? before.settings, before.tier);
}

function changeOf(
  at: { readonly accountId: string; readonly id: string },
  body: UpdateBody,
  settings: Settings | undefined,
  source: Source | undefined,
  now: string,
): ResourceChange {
  return {
    ...at,
    nowIso: now,
    ...(body.title === undefined ? {} : { title: body.title.toWellFormed() }),
    ...(body.description === undefined ? {} : { description: body.description.toWellFormed() }),
    ...(settings === undefined ? {} : { settings }),
    ...(source === undefined ? {} : { content: source.content }),
    ...(source === undefined || source.url === null ? {} : { url: source.url }),
  };
}
