import type { Hostility, OddFields } from "../history.ts";

/** Where a service answers every PUT with one `_id`, this is it. No resource has it. */
export const PUT_ID = "f".repeat(24);

/** What a service that cuts descriptions leaves of them. */
const DESCRIPTION_CHARS = 40;

type Shown = Readonly<Record<string, unknown>>;

/** What such a service stores of a description. */
export function describedBy({ descriptions = "as-sent" }: Hostility, description: string): string {
  switch (descriptions) {
    case "as-sent":
      return description;
    case "lower-case":
      return description.toLowerCase();
    case "escaped":
      return description
        .replaceAll("&", "&amp;")
        .replaceAll("<", "&lt;")
        .replaceAll(">", "&gt;")
        .replaceAll('"', "&quot;");
    case "trimmed":
      return description.trim();
    case "cut":
      return description.slice(0, DESCRIPTION_CHARS);
    case "dropped":
      return "";
  }
}

/** What answers and lists of such a service show of a record. */
export function shownBy({ odd }: Hostility, record: Shown): Shown {
  return odd === undefined ? record : { ...record, ...oddOf(odd, record) };
}

function oddOf(odd: OddFields, { _id, settings, isDeleted, createdAt, updatedAt, metadata }: Shown): Shown {
  switch (odd) {
    case "nulls":
      return { title: null, description: null, isDeleted: null, ownerId: null, createdAt: null };
    case "texts": {
      const { strategy, chunkSize, chunkOverlap } = Object(settings) as Shown;
      const sizes = { chunkSize: String(chunkSize), chunkOverlap: String(chunkOverlap) };
      return { settings: { strategy, ...sizes }, isDeleted: String(isDeleted), refreshedAt: "" };
    }
    case "numbers":
      return {
        createdAt: Date.parse(String(createdAt)),
        updatedAt: Date.parse(String(updatedAt)),
        ...(metadata !== undefined && { metadata: { ...Object(metadata), status: 3 } }),
      };
    case "numeric-ids":
      return { _id: Number(_id) };
    case "no-collection":
      return { collectionId: "" };
  }
}
