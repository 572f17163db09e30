import { setTimeout } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { codeOf } from "../../../lib/failure.ts";
import { openShares } from "../../../lib/shares.ts";
import { NOW, type Change } from "../../../wire/changes.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { ChangesPage, DocumentChange } from "../../store/changes.ts";
import { disconnectSignal } from "../limits/disconnect.ts";
import { openEventStream, type EventStream } from "./event-stream.ts";
import { callerOf, requireKey, type HttpParts } from "../operation/operation.ts";
import { refusalAnswer } from "../operation/status.ts";

/** Changes that a stream reads and sends in one slice of bulk work. */
const PAGE = 100;
/** Open streams of one kind, of all accounts. */
const STREAMS_MAX = 256;

/** One kind of stream that follows the changes of an account. */
export interface ChangeStreamOptions {
  /** Names the kind in refusals: "streams of …". */
  readonly subject: string;
  /** Time after which a stream looks for changes that other processes made, and checks its key again. */
  readonly pollMs: number;
  /** Least time between two reads of a stream that has read everything: many changes at once cost few reads. */
  readonly pauseMs: number;
}

/** Events of a stream besides the changes. */
export interface ChangeStreamEvents {
  /** Sends the first events. */
  start?(events: EventStream): void;
  /** Sends what belongs to all changes so far. Called whenever a stream has sent them, and after each `pollMs`. */
  caughtUp?(events: EventStream): Promise<void>;
}

/** Sends the changes after a cursor, and later ones when they are made, until the client disconnects or the service closes. */
export type FollowChanges = (
  request: FastifyRequest,
  reply: FastifyReply,
  cursor: string | undefined,
  extra: ChangeStreamEvents,
) => Promise<FastifyReply>;

/** Opens the streams of one kind. A stream beyond their number, or beyond its account's share of it, is refused. */
export function openChangeStreams(parts: HttpParts, options: ChangeStreamOptions): FollowChanges {
  const open = openShares(STREAMS_MAX);
  return async (request, reply, cursor, extra) => {
    const { accountId } = callerOf(request);
    if (!open.take(accountId, 1))
      throw new Refusal(
        "overloaded",
        `More than ${STREAMS_MAX} streams of ${options.subject} are open, or this account has its share of them.`,
      );
    try {
      // Refused with a status as long as nothing is sent.
      const first = await readPage(parts, accountId, cursor, PAGE);
      return await stream(parts, options, { request, reply, first, extra });
    } finally {
      open.give(accountId, 1);
    }
  };
}

/** Returns the id of the last event that the client received, which a client that reconnects sends. */
export function lastEventId(request: FastifyRequest): string | undefined {
  const id = request.headers["last-event-id"];
  return typeof id === "string" && id !== "" ? id : undefined;
}

interface Follower {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly first: ChangesPage;
  readonly extra: ChangeStreamEvents;
}

async function stream(
  parts: HttpParts,
  options: ChangeStreamOptions,
  { request, reply, first, extra }: Follower,
): Promise<FastifyReply> {
  const { kb, keyring } = parts;
  const { accountId } = callerOf(request);
  const { pollMs, pauseMs } = options;
  const signal = disconnectSignal(request, reply);
  const events = openEventStream(reply, parts.answerIdleMs);
  // Ends the wait for the next change.
  signal.addEventListener("abort", () => kb.changeWaits.notify(accountId), { once: true });
  try {
    extra.start?.(events);
    let checkedMs = kb.steadyMs();
    // Older than the check of the request: a change of keys since then costs one more check.
    let generation = 0;
    let page = first;
    while (!signal.aborted && !kb.isEnding()) {
      for (const change of page.changes) events.send("change", changeOf(change), change.cursor);
      const isCaughtUp = page.changes.length < PAGE;
      if (isCaughtUp) await extra.caughtUp?.(events);
      await events.drained();
      if (keyring.generation() !== generation || kb.steadyMs() - checkedMs >= pollMs) {
        generation = keyring.generation();
        await checkCaller(parts, request);
        checkedMs = kb.steadyMs();
      }
      if (isCaughtUp) await setTimeout(pauseMs);
      // Listens before it reads, so that no change is made in between; not beyond the next check, however many changes are made.
      const listening = kb.changeWaits.listen(accountId, checkedMs + pollMs - kb.steadyMs());
      try {
        page = await readPage(parts, accountId, page.cursor, PAGE);
        const mayWait = page.changes.length === 0 && keyring.generation() === generation;
        if (mayWait && !signal.aborted) await listening.ended;
      } finally {
        listening.stop();
      }
    }
  } catch (error) {
    if (!signal.aborted) events.send("error", refusalAnswer(error).body);
  }
  events.end();
  return reply;
}

/** Throws if the key, or the session, is no longer valid. */
async function checkCaller(parts: HttpParts, request: FastifyRequest): Promise<void> {
  try {
    await requireKey(parts, "read")(request);
  } catch (error) {
    // An open stream is no further request.
    if (codeOf(error) !== "rate_limited") throw error;
  }
}

/** Reads a page, and resolves when bulk work may run. Throws `cursor_expired`. */
export async function readPage(
  { kb, urgent }: HttpParts,
  accountId: string,
  cursor: string | undefined,
  limit: number,
): Promise<ChangesPage> {
  const page = await kb.records.changes({ accountId, cursor, limit });
  await urgent.pause();
  if (page !== undefined) return page;
  throw new Refusal(
    "cursor_expired",
    "The changes after this cursor are no longer stored, or it is not known here.",
    {
      field: "cursor",
      hint: `Read the cursor \`${NOW}\`, then list the resources, then continue from that cursor.`,
    },
  );
}

/** Returns a change in the wire format. */
export function changeOf({ kind, resourceId, at, ...change }: DocumentChange): Change {
  return { ...change, type: `document.${kind}`, timestamp: at, _id: resourceId };
}
