import type { Readable } from "node:stream";
import { codeOf } from "../../../lib/failure.ts";
import { openTurns } from "../../../lib/turns.ts";
import type { KnowledgeBase } from "../../resources/knowledge-base.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import type { Records } from "../../store/records.ts";
import type { StoredFile } from "../../store/files.ts";
import type { Resource } from "../../store/resources.ts";

/** Longest `Idempotency-Key` in characters, as in other services. */
const KEY_CHARS_MAX = 255;
/** Maximum wait of a repeated request for the first one, which may ingest a long document; shorter than proxy timeouts. */
const WAIT_MS = 30_000;
/** `Retry-After` when the wait ends. */
const RETRY_AFTER_SECONDS = 10;

/** An answer as sent. */
export interface SentAnswer {
  readonly status: number;
  /** JSON text; a stream if it is long; empty for 304. */
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Executes a request once, and answers a repeated one from the result of the first. `work` notes the request in the
 * transaction of its write, so a crash leaves both or neither. A refused request is not noted, because it did nothing; its
 * key may be used again. A request with the same key waits for one in flight, of any process of the store, up to a bound.
 */
export interface Idempotency {
  once<T>(
    request: { readonly accountId: string; readonly key: string; readonly sha256: string },
    work: () => Promise<T>,
    replay: (noted: StoredAnswer) => Promise<T>,
  ): Promise<T>;
}

/** Opens idempotency over the notes of a store. `shared` orders the requests of its processes. */
export function openIdempotency(
  records: Pick<Records, "recall">,
  shared: Pick<KnowledgeBase["sharedTurns"], "run">,
  nowMs: () => number,
  waitMs: number = WAIT_MS,
): Idempotency {
  const turns = openTurns();
  const answer: Idempotency["once"] = async ({ accountId, key, sha256 }, work, replay) => {
    const recall = () => records.recall(accountId, key, nowMs());
    let noted = await recall();
    if (noted === undefined) {
      try {
        return await work();
      } catch (error) {
        // This process was stopped for so long that another one took over the request. The write did nothing.
        if (codeOf(error) !== "request_noted") throw error;
        noted = await recall();
        if (noted === undefined) throw inProgress();
      }
    }
    if (noted.bodySha256 !== sha256) throw conflict();
    return replay(noted);
  };
  return {
    once: (request, work, replay) =>
      new Promise((resolve, reject) => {
        const name = `request ${request.accountId}/${request.key}`;
        const endMs = performance.now() + waitMs;
        let isLate = false;
        const timer = setTimeout(() => {
          isLate = true;
          reject(inProgress());
        }, waitMs);
        const turn = turns.run(name, async () => {
          clearTimeout(timer);
          if (isLate) return;
          const wait = { waitMs: endMs - performance.now(), busy: inProgress };
          resolve(await shared.run(name, wait, () => answer(request, work, replay)));
        });
        turn.catch(reject);
      }),
  };
}

/** The content of a request's note. */
export type Note =
  | { readonly kind: "resource"; readonly resource: Resource }
  | { readonly kind: "reference"; readonly resourceId: string }
  | { readonly kind: "file"; readonly file: StoredFile }
  | { readonly kind: "question"; readonly messageId: string };

/** Parses a note. */
export function readStoredAnswer({ body }: StoredAnswer): Note {
  // Written by the store with one of these fields.
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
  throw new Error("the note of a request says nothing that was written");
}

function conflict(): Refusal {
  return new Refusal(
    "idempotency_conflict",
    "This Idempotency-Key was used with another request within 24 hours.",
    { hint: "Use a new key for a new request." },
  );
}

function inProgress(): Refusal {
  return new Refusal(
    "idempotency_in_progress",
    "The first request with this Idempotency-Key is in progress.",
    {
      hint: "Repeat it later under the same key.",
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

/** Returns the key of the header; undefined without the header. Throws `invalid_header`. */
export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && isIdempotencyKey(header)) return header;
  throw new Refusal(
    "invalid_header",
    `Idempotency-Key: expected 1 to ${KEY_CHARS_MAX} printable ASCII characters.`,
  );
}

/** Reports whether a text is a valid idempotency key. */
function isIdempotencyKey(text: string): boolean {
  return text.length <= KEY_CHARS_MAX && /^[\x21-\x7e]+$/.test(text);
}
