import { newHexId } from "../../lib/ids.ts";
import { DEFAULT_SETTINGS } from "../../wire/primitives.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import type { CreateBody } from "../../wire/resource.ts";
import type { Resource } from "../store/store.ts";
import { nowIso } from "./knowledge-base.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { notYet, Refusal } from "./refusal.ts";
import { contentSource, urlSource } from "./source.ts";

/**
 * Operation 2. Resolves when the resource is searchable and durable. When it throws, nothing of it exists.
 * Two live resources may have the same title.
 */
export async function createResource(
  kb: KnowledgeBase,
  accountId: string,
  body: CreateBody,
): Promise<Resource> {
  const settings = body.settings ?? DEFAULT_SETTINGS;
  refuseSettingsOfLater(settings);
  refuseTierOfLater(body.collection_details, "collection_details");

  const source = await sourceOf(kb, accountId, body);
  const chunking = await kb.ingest.chunk(source.content, settings, body.collection_details);
  return kb.store.createResource(
    {
      id: newHexId(kb.nowMs()),
      accountId,
      tier: body.collection_details,
      ownerId: body.owner_id?.toWellFormed() ?? accountId,
      title: body.title.toWellFormed(),
      description: body.description.toWellFormed(),
      settings,
      createdAt: nowIso(kb),
      ...source,
    },
    chunking,
  );
}

function sourceOf(
  kb: KnowledgeBase,
  accountId: string,
  { url, content }: CreateBody,
): ReturnType<typeof urlSource> {
  if (url !== undefined && content !== undefined) {
    throw new Refusal("invalid_field", "url: expected either url or content, got both", {
      field: "url",
      hint: "Send url for an uploaded file or a link, content for raw text.",
    });
  }
  if (url !== undefined) return urlSource(kb, accountId, url);
  if (content !== undefined) return Promise.resolve(contentSource(kb, content));
  throw new Refusal("invalid_field", "content: expected one of url and content, got neither", {
    field: "content",
    hint: "Send url for an uploaded file or a link, content for raw text.",
  });
}

/** Throws for the chunking strategies that are not there yet. */
export function refuseSettingsOfLater(settings: Settings): void {
  if (settings.strategy === "recursive") return;
  const instead = 'Use "recursive", which follows headings, paragraphs and sentences.';
  throw notYet(`The chunking strategy ${settings.strategy}`, instead, "settings.strategy");
}

/** Throws for the tier that is not there yet. */
export function refuseTierOfLater(tier: Tier, field: string): void {
  if (tier !== "high_accuracy") return;
  throw notYet("The tier high_accuracy", 'Use "moderate", or "fastest" for the lowest latency.', field);
}
