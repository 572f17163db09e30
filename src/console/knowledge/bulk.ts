import { signal } from "@preact/signals";
import { ROUTES } from "../../wire/routes.ts";
import { ask, RequestError } from "../client/api.ts";

/** What is done to many documents. */
export type BulkKind = "delete" | "retry";

/** A document of the work, with what a retry sends. */
export interface BulkItem {
  readonly id: string;
  readonly title: string;
  /** Body of the update that takes the document in again. */
  readonly again: object;
}

/** Work on many documents, one request each. */
export interface Bulk {
  readonly kind: BulkKind;
  readonly total: number;
  readonly left: readonly BulkItem[];
  readonly failed: readonly { readonly item: BulkItem; readonly message: string }[];
  readonly state: "working" | "stopped" | "done";
}

/** The work of this tab; null: none. */
export const bulk = signal<Bulk | null>(null);

/** Where the rest is stored, so that it goes on after a reload. It ends with the tab. */
const STORED = "kbsync-bulk";
/** Requests in flight: enough to keep the service busy, few enough to leave it to others. */
const AT_ONCE = 4;
/** Listeners of documents that were changed. */
const listeners = new Set<() => void>();

/** Calls a listener when the work ends; returns the function that removes it. */
export function onBulkEnd(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Starts the work. One at a time: the caller offers none while another is under way. */
export function startBulk(kind: BulkKind, items: readonly BulkItem[]): void {
  bulk.value = { kind, total: items.length, left: items, failed: [], state: "working" };
  void work();
}

/** Goes on with the work that a reload interrupted. */
export function resumeBulk(): void {
  const stored = sessionStorage.getItem(STORED);
  if (stored === null || bulk.peek() !== null) return;
  bulk.value = JSON.parse(stored) as Bulk; // written below
  void work();
}

/** Starts no more requests. Those in flight end. */
export function stopBulk(): void {
  if (bulk.value !== null) bulk.value = { ...bulk.value, state: "stopped" };
}

/** Forgets work that ended. */
export function dismissBulk(): void {
  bulk.value = null;
  sessionStorage.removeItem(STORED);
}

async function work(): Promise<void> {
  const begun = new Set<string>();
  const lane = async (): Promise<void> => {
    for (;;) {
      const now = bulk.peek();
      const item = now?.left.find(({ id }) => !begun.has(id));
      if (now === null || now.state !== "working" || item === undefined) return;
      begun.add(item.id);
      const message = await carryOut(now.kind, item);
      const after = bulk.peek();
      if (after === null) return;
      const left = after.left.filter(({ id }) => id !== item.id);
      const failed = message === undefined ? after.failed : [...after.failed, { item, message }];
      bulk.value = { ...after, left, failed };
      store();
    }
  };
  store();
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const end = bulk.peek();
  if (end === null) return;
  if (end.state === "working") bulk.value = { ...end, state: "done" };
  sessionStorage.removeItem(STORED);
  for (const listener of listeners) listener();
}

function store(): void {
  if (bulk.peek()?.state === "working") sessionStorage.setItem(STORED, JSON.stringify(bulk.peek()));
}

/** Returns why it failed; undefined: it did not. */
async function carryOut(kind: BulkKind, { id, again }: BulkItem): Promise<string | undefined> {
  const path = `${ROUTES.resource}/${id}`;
  // Both may be repeated: a second delete finds nothing, and a second retry does the same again.
  const headers = { "idempotency-key": `console-${kind}-${id}-${Date.now()}` };
  try {
    if (kind === "delete") await ask(path, { method: "DELETE", headers });
    else await ask(path, { method: "PUT", body: again, headers });
    return undefined;
  } catch (error) {
    if (kind === "delete" && error instanceof RequestError && error.code === "resource_not_found")
      return undefined;
    return error instanceof Error ? error.message : String(error);
  }
}
