import type { Readable } from "node:stream";
import { openTurns } from "../../lib/turns.ts";
import { Refusal } from "../resources/refusal.ts";
import type { KeptAnswer, Store } from "../store/store.ts";

/** Longest `Idempotency-Key` in characters, as other services have it. */
const KEY_CHARS_MAX = 255;

/**
 * Longest answer kept whole, in characters: those of creates and of short updates. With the store's bound on their
 * number, all together stay below a gigabyte; whole records of 32 MB would fill any disk within the 24 hours.
 */
const KEPT_CHARS_MAX = 8 * 1024;
/** Begins the note of a longer answer, of which the resource's id is kept. No JSON begins so. */
const REFERENCE = "resource ";

/** An answer as it was sent the first time. */
export interface SentAnswer {
  readonly status: number;
  /** JSON text; a stream where it is long. */
  readonly body: string | Readable;
  /** The resource it is the record of. */
  readonly resourceId?: string;
}

/**
 * Answers a repeated request as the first one was answered, to the byte; where that was too long to be kept, by asking
 * `again` for the record of the resource as it is now, with the first status. Only successful answers are kept: a refused request has
 * done nothing, so the same key may try again. The same key at the same time waits for the first to finish.
 */
export interface Idempotency {
  once(
    request: { readonly accountId: string; readonly key: string; readonly sha256: string },
    work: () => Promise<SentAnswer>,
    again?: (resourceId: string) => Promise<SentAnswer>,
  ): Promise<SentAnswer>;
}

/** Opens the memory of answers on a store. `onLost` hears of an answer that was sent but could not be kept. */
export function openIdempotency(
  store: Pick<Store, "recall" | "remember">,
  nowMs: () => number,
  onLost: (error: unknown) => void,
): Idempotency {
  const turns = openTurns();
  return {
    once: ({ accountId, key, sha256 }, work, again) => {
      const { promise, resolve, reject } = Promise.withResolvers<SentAnswer>();
      const turn = turns.run(`${accountId}/${key}`, async () => {
        const kept = await store.recall(accountId, key, nowMs());
        if (kept !== undefined) {
          resolve(await repeated(kept, sha256, again));
          return;
        }
        const answer = await work();
        // Answered at once, while the note is written and the next of this key waits: a crash in between forgets the
        // key of a request whose client has its answer, and waiting would only move that moment by a commit.
        resolve(answer);
        if (answer.status >= 300) return;
        const note = { bodySha256: sha256, status: answer.status, body: noteOf(answer) };
        await store.remember(accountId, key, note, nowMs()).catch(onLost);
      });
      turn.catch(reject);
      return promise;
    },
  };
}

function noteOf({ body, resourceId }: SentAnswer): string {
  if (typeof body === "string" && (body.length <= KEPT_CHARS_MAX || resourceId === undefined)) return body;
  return `${REFERENCE}${resourceId}`;
}

async function repeated(
  kept: KeptAnswer,
  sha256: string,
  again: ((resourceId: string) => Promise<SentAnswer>) | undefined,
): Promise<SentAnswer> {
  if (kept.bodySha256 !== sha256) {
    throw new Refusal(
      "idempotency_conflict",
      "This Idempotency-Key was used with another request within 24 hours.",
      { hint: "Use a new key for a new request." },
    );
  }
  if (again === undefined || !kept.body.startsWith(REFERENCE))
    return { status: kept.status, body: kept.body };
  return { ...(await again(kept.body.slice(REFERENCE.length))), status: kept.status };
}

/** The key of the header: undefined where none was sent. Throws `invalid_header`. */
export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && header.length <= KEY_CHARS_MAX && /^[\x21-\x7e]+$/.test(header))
    return header;
  throw new Refusal(
    "invalid_header",
    `Idempotency-Key: expected 1 to ${KEY_CHARS_MAX} printable ASCII characters.`,
  );
}
