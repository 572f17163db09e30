import type { ListedDocument, Status } from "./listed-document.ts";

/** What a person chose to see. */
export interface Filter {
  readonly text: string;
  readonly status: Status | "all";
  readonly sort: SortKey;
  readonly isDescending: boolean;
}
export type SortKey = "title" | "status" | "updated";

/** Returns the documents that match every word of the filter, in its order. */
export function filtered(documents: readonly ListedDocument[], filter: Filter): readonly ListedDocument[] {
  const words = filter.text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found = documents.filter(
    (each) =>
      (filter.status === "all" || each.status === filter.status) &&
      words.every((word) => each.words.includes(word)),
  );
  const sign = filter.isDescending ? -1 : 1;
  return found.toSorted((a, b) => sign * compare(a, b, filter.sort));
}

const ORDER: Readonly<Record<Status, number>> = { failed: 0, waiting: 1, searchable: 2 };
const COLLATOR = new Intl.Collator("en", { numeric: true });

function compare(a: ListedDocument, b: ListedDocument, key: SortKey): number {
  switch (key) {
    case "title":
      return COLLATOR.compare(a.title, b.title);
    case "status":
      return ORDER[a.status] - ORDER[b.status] || COLLATOR.compare(a.title, b.title);
    case "updated":
      return a.updatedMs - b.updatedMs;
  }
}
