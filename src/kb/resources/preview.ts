import { DEFAULT_SETTINGS } from "../../wire/primitives.ts";
import { PREVIEW_CHARS_MAX } from "../../wire/constants.ts";
import type { PreviewAnswer, PreviewBody } from "../../wire/preview.ts";
import type { Span } from "../store/chunks.ts";
import { usingFile } from "./file-token.ts";
import { requesterOf, type KnowledgeBase, type OwnerKey } from "./knowledge-base.ts";
import { readResource } from "./read.ts";
import { invalidField } from "./refusal.ts";
import { contentSource, urlSource, type Source } from "./source.ts";

/**
 * Splits a text as a create would, and stores nothing (an addition). Splits the beginning of a long text. Throws what a create
 * throws.
 */
export async function previewChunks(
  kb: KnowledgeBase,
  accountId: string,
  body: PreviewBody,
): Promise<PreviewAnswer["data"]> {
  const owner = { accountId, ownerId: accountId };
  const { content: whole, warning } = await usingFile(kb, body.url, () => textOf(kb, owner, body));
  const content = beginning(whole);
  const settings = body.settings ?? DEFAULT_SETTINGS;
  const chunking = await kb.ingest.chunk(content, settings, { requester: requesterOf(kb, owner) });
  return {
    content,
    isCut: content.length < whole.length,
    strategyUsed: chunking.strategyUsed ?? settings.strategy,
    chunks: chunking.spans.map(previewChunk),
    ...(warning !== undefined && { warning }),
  };
}

function previewChunk({
  start,
  end,
  headings,
  before,
  after,
}: Span): PreviewAnswer["data"]["chunks"][number] {
  const repeats = { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
  return { start, end, headings: [...headings], ...repeats };
}

async function textOf(
  kb: KnowledgeBase,
  owner: OwnerKey,
  { content, url, doc_id: id }: PreviewBody,
): Promise<Pick<Source, "content" | "warning">> {
  if ([content, url, id].filter((each) => each !== undefined).length !== 1)
    throw invalidField(
      "content",
      "expected exactly one of content, url and doc_id",
      "Send content for raw text, url for an uploaded file or a link, doc_id for a resource.",
    );
  if (url !== undefined) return urlSource(kb, owner, url);
  if (id !== undefined) return { content: (await readResource(kb, owner.accountId, id)).content };
  return contentSource(kb, { content });
}

/** Returns the beginning of a text. Splits no surrogate pair. */
function beginning(text: string): string {
  if (text.length <= PREVIEW_CHARS_MAX) return text;
  return text.slice(0, PREVIEW_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, "");
}
