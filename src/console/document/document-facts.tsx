import type { JSX } from "preact";
import { withoutMarker } from "../../wire/marker.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import { stateOf, STATUS_WORDS, uploadName } from "../knowledge/listed-document.ts";
import { State } from "../parts/notice.tsx";
import { Fact } from "../parts/fact.tsx";
import { bytes, count, counted, moment } from "../view/format.ts";

/** Keys of the service in a record's metadata, which have their own places. */
const OWN_KEYS: ReadonlySet<string> = new Set(["status", "message", "error", "warning", "strategyUsed"]);
/** A time as JSON has it. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** What is known about a document, and below it the metadata that it came with. */
export function DocumentFacts({
  record,
  version,
  chunks,
}: {
  readonly record: ResourceRecord;
  readonly version: number;
  readonly chunks: number;
}): JSX.Element {
  const { metadata, settings, createdAt = "", updatedAt = "", url, title } = record;
  const description = withoutMarker(record.description);
  const { label, kind } = STATUS_WORDS[stateOf(record).status];
  const used = metadata?.["strategyUsed"];
  const own = Object.entries(metadata ?? {}).filter(([name]) => !OWN_KEYS.has(name));
  return (
    <section class="card stack" aria-label="Facts">
      <dl class="facts">
        <Fact name="Status">
          <State kind={kind}>{label}</State>
        </Fact>
        {["", title].includes(description) ? null : <Fact name="Description">{description}</Fact>}
        {url === undefined || url === null ? null : (
          <Fact name="Source">
            <SafeLink url={url} />
          </Fact>
        )}
        <Fact name="Added">{moment(Date.parse(createdAt))}</Fact>
        <Fact name="Updated">{moment(Date.parse(updatedAt))}</Fact>
        <Fact name="Version">
          {count(version)}, with {counted(chunks, "chunk")}
        </Fact>
        <Fact name="Chunking">
          {settings?.strategy}, {count(settings?.chunkSize ?? 0)} characters,{" "}
          {count(settings?.chunkOverlap ?? 0)} overlap{typeof used === "string" ? ` (split as ${used})` : ""}
        </Fact>
      </dl>
      {own.length === 0 ? null : (
        <>
          <h2 class="rule">Metadata</h2>
          <dl class="facts">
            {own.map(([name, value]) => (
              <Fact key={name} name={name}>
                {metadataText(name, value)}
              </Fact>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

/** A value of metadata in words: times as elsewhere in the console, lists with commas, sizes with a unit. */
function metadataText(name: string, value: unknown): string {
  if (typeof value === "string") return TIME.test(value) ? moment(Date.parse(value)) : value;
  if (typeof value === "number") return name === "size" ? bytes(value) : String(value);
  if (Array.isArray(value)) return value.map((each) => metadataText(name, each)).join(", ");
  return JSON.stringify(value);
}

/** A link only to what a browser fetches as a page: an address may come from a hostile document. */
function SafeLink({ url }: { readonly url: string }): JSX.Element {
  const isWeb = /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  return isWeb ? (
    <a href={url} target="_blank" rel="noreferrer noopener">
      {uploadName(url) ?? url}
    </a>
  ) : (
    <span>{url}</span>
  );
}
