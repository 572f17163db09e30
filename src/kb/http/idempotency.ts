import type { Readable } from "node:stream";
import { openTurns } from "../../lib/turns.ts";
import { Refusal } from "../resources/refusal.ts";
import type { StoredAnswer } from "../store/request-note.ts";
import type { Store } from "../store/store.ts";
import type { Resource, StoredFile } from "../store/records.ts";

/** Longest `Idempotency-Key` in characters, as other services have it. */
const KEY_CHARS_MAX = 255;
/** How long a repeated request waits for the first one, which may be reading a long document; shorter than proxies wait. */
const WAIT_MS = 30_000;
/** When to ask again after that, in seconds. */
const ASK_AGAIN_SECONDS = 10;

/** An answer as it goes out. */
export interface SentAnswer {
  readonly status: number;
  /** JSON text; a stream where it is long; empty for 304. */
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Does a request once, and answers a repeated one from what the first one did. The work itself notes the request, in the
 * transaction of its write: both are there after a crash, or neither. Only what was done is noted: a refused request has
 * done nothing, so the same key may try again. The same key at the same time waits for the first to finish, a while.
 */
export interface Idempotency {
  once<T>(
    request: { readonly accountId: string; readonly key: string; readonly sha256: string },
    work: () => Promise<T>,
    again: (kept: StoredAnswer) => Promise<T>,
  ): Promise<T>;
}

/** Opens it on the notes of a store. */
export function openIdempotency(
  store: Pick<Store, "recall">,
  nowMs: () => number,
  waitMs: number = WAIT_MS,
): Idempotency {
  const turns = openTurns();
  return {
    once: ({ accountId, key, sha256 }, work, again) =>
      new Promise((resolve, reject) => {
        let isLate = false;
        const patience = setTimeout(() => {
          isLate = true;
          reject(inProgress());
        }, waitMs);
        const turn = turns.run(`${accountId}/${key}`, async () => {
          clearTimeout(patience);
          if (isLate) return;
          const kept = await store.recall(accountId, key, nowMs());
          if (kept === undefined) resolve(await work());
          else if (kept.bodySha256 === sha256) resolve(await again(kept));
          else throw conflict();
        });
        turn.catch(reject);
      }),
  };
}

/** What the note of a request tells. */
export type Kept =
  | { readonly kind: "answer"; readonly body: string }
  | { readonly kind: "resource"; readonly resource: Resource }
  | { readonly kind: "reference"; readonly resourceId: string }
  | { readonly kind: "file"; readonly file: StoredFile }
  | { readonly kind: "question"; readonly messageId: string };

/** Begins a reference in the notes of earlier versions. */
const OLD_REFERENCE = "resource ";

/** Reads a note, those of earlier versions as well. */
export function readStoredAnswer({ body }: StoredAnswer): Kept {
  if (body.startsWith(OLD_REFERENCE))
    return { kind: "reference", resourceId: body.slice(OLD_REFERENCE.length) };
  // Written by the store, with one of these fields or, by earlier versions, as an answer.
  const note = JSON.parse(body) as {
    resource?: Resource;
    resourceId?: string;
    file?: StoredFile;
    messageId?: string;
  };
  if (note.resource !== undefined)
    return { kind: "resource", resource: { ...note.resource, content: note.resource.content ?? "" } };
  if (note.resourceId !== undefined) return { kind: "reference", resourceId: note.resourceId };
  if (note.file !== undefined) return { kind: "file", file: note.file };
  if (note.messageId !== undefined) return { kind: "question", messageId: note.messageId };
  return { kind: "answer", body };
}

function conflict(): Refusal {
  return new Refusal(
    "idempotency_conflict",
    "This Idempotency-Key was used with another request within 24 hours.",
    { hint: "Use a new key for a new request." },
  );
}

function inProgress(): Refusal {
  return new Refusal("idempotency_in_progress", "The first request with this Idempotency-Key is under way.", {
    hint: "Repeat it later under the same key.",
    retryAfterSeconds: ASK_AGAIN_SECONDS,
  });
}

/** The key of the header: undefined where none was sent. Throws `invalid_header`. */
export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && isIdempotencyKey(header)) return header;
  throw new Refusal(
    "invalid_header",
    `Idempotency-Key: expected 1 to ${KEY_CHARS_MAX} printable ASCII characters.`,
  );
}

/** Whether a text can be an idempotency key. */
export function isIdempotencyKey(text: string): boolean {
  return text.length <= KEY_CHARS_MAX && /^[\x21-\x7e]+$/.test(text);
}
