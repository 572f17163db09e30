import { signal } from "@preact/signals";
import type { ResourceAnswer } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";

/** Documents that can be chosen at a time. */
export const CHOSEN_MAX = 10_000;
/** Requests in flight. The service groups their commits. */
const WIDTH = 4;

/** A document that could not be deleted or retried. */
export interface Failure {
  readonly id: string;
  readonly title: string;
  readonly error: unknown;
}

/** Work on many documents, one request each. It ends when this page is left. */
export interface ManyDocuments {
  readonly kind: "delete" | "retry";
  readonly state: "working" | "done" | "stopped";
  readonly total: number;
  readonly done: number;
  readonly failures: readonly Failure[];
}

/** The work that is shown; undefined: none. */
export const work = signal<ManyDocuments | undefined>(undefined);
/** Grows when work ends. */
export const workEnds = signal(0);

/** Deletes or retries documents. Resolves when the last one is done. The caller starts no second work meanwhile. */
export async function workOnMany(
  kind: ManyDocuments["kind"],
  documents: readonly { readonly id: string; readonly title: string }[],
): Promise<void> {
  work.value = { kind, state: "working", total: documents.length, done: 0, failures: [] };
  const change = (changes: Partial<ManyDocuments>): void => {
    const current = work.peek();
    if (current !== undefined) work.value = { ...current, ...changes };
  };
  const left = documents.values();
  const lane = async (): Promise<void> => {
    // All lanes share the iterator.
    for (const { id, title } of left) {
      const failure = await (kind === "delete" ? remove(id) : retry(id)).then(
        () => [],
        (error: unknown) => [{ id, title, error }],
      );
      const { done = 0, failures = [], state } = work.peek() ?? {};
      change({ done: done + 1, failures: [...failures, ...failure] });
      if (state !== "working") return;
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, lane));
  if (work.peek()?.state === "working") change({ state: "done" });
  workEnds.value += 1;
}

/** Starts no more documents. */
export function stopWork(): void {
  const current = work.peek();
  if (current !== undefined) work.value = { ...current, state: "stopped" };
}

/** Hides work that ended. */
export function dismissWork(): void {
  work.value = undefined;
}

async function remove(id: string): Promise<void> {
  await ask(`${ROUTES.resource}/${id}`, { method: "DELETE" });
}

/** Reads the address of a failed document again, or splits its text again. */
async function retry(id: string): Promise<void> {
  const path = `${ROUTES.resource}/${id}`;
  const { data } = await ask<ResourceAnswer>(path);
  await ask(path, {
    method: "PUT",
    body: data.url === undefined ? { settings: data.settings } : { url: data.url },
    // Sent twice, because the answer was lost, it is one change.
    headers: { prefer: "respond-async", "idempotency-key": crypto.randomUUID() },
  });
}
