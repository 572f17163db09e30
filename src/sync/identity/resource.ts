import { digestOf } from "../../formats/digest.ts";
import { hashListedMetadata } from "../../formats/metadata.ts";
import { STILL_READ } from "../../wire/constants.ts";
import { Strategy, type Settings } from "../../wire/primitives.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import { labelOf } from "../send/observe.ts";
import type { ListedResource } from "../plan/model.ts";
import { warningOf } from "../send/remote/resource-requests.ts";

/** Reduces a resource of the list to what is compared; hashes the text. */
export function resourceOf(record: ResourceRecord): ListedResource {
  const url = record.url ?? undefined;
  const warning = warningOf(record);
  const status = record.metadata?.status;
  const isUnfinished = status === "queued" || status === "error" || warning?.endsWith(STILL_READ) === true;
  const metadataHash = hashListedMetadata(record.metadata, url !== undefined);
  return {
    docId: record._id,
    createdMs: timeOf(record.createdAt),
    updatedMs: timeOf(record.updatedAt),
    url,
    digest: url === undefined ? digestOf(record.content ?? "") : "",
    label: labelOf(record.title, record.description),
    title: record.title,
    settings: settingsOf(record),
    ...(isUnfinished && { isUnfinished }),
    ...(warning !== undefined && { warning }),
    ...(metadataHash !== undefined && { metadataHash }),
  };
}

/** Returns the settings that a list shows of a resource. A service may omit them. */
function settingsOf({ settings }: ResourceRecord): Partial<Settings> {
  const strategy = Strategy.safeParse(settings?.strategy);
  return {
    ...(strategy.success && { strategy: strategy.data }),
    ...(settings?.chunkSize !== undefined && { chunkSize: settings.chunkSize }),
    ...(settings?.chunkOverlap !== undefined && { chunkOverlap: settings.chunkOverlap }),
  };
}

/** Returns a time in milliseconds; undefined where a service shows none, or in a form of its own. */
export function timeOf(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}
