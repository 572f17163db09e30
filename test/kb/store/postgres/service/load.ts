import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { Random } from "../../../../simulate/virtual/random.ts";

export const OWNER = "load";
/** An answer that takes longer is not waited for: its process may be stopped. */
const ANSWER_MS = 3000;
/** Time for a request, repeated, to be carried out. */
const CARRIED_OUT_MS = 60_000;
/** Answers after which a client sends the same request again. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503]);

/** What a client knows of a document that it alone changes, after the last answer. */
export interface Known {
  readonly id: string;
  readonly title: string;
  content: string;
  /** Changes of the text that were answered, and the create. */
  version: number;
  isDeleted: boolean;
}

export interface Load {
  /** What the answers promise. */
  readonly known: readonly Known[];
  /** What is wrong with answers. */
  readonly problems: readonly string[];
  /** Sends no new requests, and resolves when all have been carried out. */
  stop(): Promise<void>;
}

/** Sends a request to one of several services. */
export interface Client {
  send(at: number, method: string, path: string, body?: object, headers?: object): Promise<Answer>;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  // Tests read single fields.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** Reports whether a client does not send a request again. */
function isDefinite({ status, json }: Answer): boolean {
  return !AGAIN.has(status) && json.error?.code !== "idempotency_in_progress";
}

/** Opens a client of services, whose addresses may change. */
export function openClient(addressOf: (at: number) => string, key: string): Client {
  const agent = new Agent({ connections: 64 });
  return {
    send: async (at, method, path, body, headers = {}) => {
      const answer = await request(addressOf(at) + path, {
        dispatcher: agent,
        method: method as "GET", // the type lists the common ones
        headers: { pauthkey: key, "content-type": "application/json", ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return { status: answer.statusCode, json: await answer.body.json() };
    },
    close: () => agent.destroy(),
  };
}

/**
 * Starts clients that create, change, read, find and delete documents of their own. Each request goes to any service, and is repeated,
 * under its Idempotency-Key, at any other one until it is answered.
 */
export function startLoad(
  client: Client,
  collectionId: string,
  {
    services,
    clients,
    random,
  }: { readonly services: number; readonly clients: number; readonly random: Random },
): Load {
  const known: Known[] = [];
  const problems: string[] = [];
  const stopping = new AbortController();

  const untilAnswered = async (
    method: string,
    path: string,
    body: object | undefined,
    headers: object,
  ): Promise<Answer> => {
    const endMs = performance.now() + CARRIED_OUT_MS;
    // A client that waits too long for an answer repeats a request that is still being carried out.
    const isHasty = ("idempotency-key" in headers || method === "DELETE") && random.chance(0.4);
    for (;;) {
      const answers = await Promise.all(
        Array.from({ length: isHasty ? 3 : 1 }, () =>
          client.send(random.below(services), method, path, body, headers).catch(() => undefined),
        ),
      );
      const [answer, ...others] = answers.filter((each) => each !== undefined && isDefinite(each));
      if (answer !== undefined) {
        for (const other of others) compare(answer, other);
        return answer;
      }
      if (performance.now() > endMs) throw new Error(`${method} ${path} was not carried out`);
      await sleep(50);
    }
  };
  /** Compares the answers to one request. Of several deletes one does it. */
  const compare = (one: Answer, other: Answer | undefined): void => {
    const [text, again] = [one, other].map((each) => JSON.stringify(each));
    if (!text?.includes("resource_not_found") && !again?.includes("resource_not_found") && text !== again)
      problems.push(`one request was answered ${text} and ${again}`);
  };
  const expectStatus = (answer: Answer, what: string, ...wanted: number[]): void => {
    if (!wanted.includes(answer.status))
      problems.push(`${what}: ${answer.status} ${JSON.stringify(answer.json)}`);
  };

  const runClient = async (name: string): Promise<void> => {
    const own: Known[] = [];
    for (let step = 0; !stopping.signal.aborted; step += 1) {
      const word = `word${name}x${step}`;
      const key = { "idempotency-key": word };
      const content = `The ${word} stands here.`;
      const live = own.filter(({ isDeleted }) => !isDeleted);
      const one = live[random.below(Math.max(1, live.length))];
      if (one === undefined || random.chance(0.4)) {
        const isQueued = random.chance(0.4);
        const body = {
          title: word,
          description: "",
          content,
          collection_details: "fastest",
          owner_id: OWNER,
        };
        const headers = isQueued ? { ...key, prefer: "respond-async" } : key;
        const answer = await untilAnswered("POST", "/api/rag/resource", body, headers);
        expectStatus(answer, `create ${word}`, 201, 202);
        const created = { id: answer.json.data?._id, title: word, content, version: 1, isDeleted: false };
        known.push(created);
        own.push(created);
        // A queued document has no text yet.
        if (!isQueued) await checkRead(created);
      } else if (random.chance(0.75)) {
        const answer = await untilAnswered("PUT", `/api/rag/resource/${one.id}`, { content }, key);
        expectStatus(answer, `update ${one.title}`, 200);
        one.content = content;
        one.version += 1;
        await checkRead(one);
      } else {
        // A repeated delete finds nothing.
        const answer = await untilAnswered("DELETE", `/api/rag/resource/${one.id}`, undefined, {});
        expectStatus(answer, `delete ${one.title}`, 200, 404);
        one.isDeleted = true;
        await checkRead(one);
      }
    }
  };
  /** Reads what was just answered at any service, and searches for it at another one. */
  const checkRead = async ({ id, content, isDeleted }: Known): Promise<void> => {
    const read = await untilAnswered("GET", `/api/rag/resource/${id}`, undefined, {});
    // The record of a deleted document stays, without its text.
    const found = read.json.data?.content;
    const expected = isDeleted ? "" : content;
    if (found !== expected) problems.push(`read ${id}: ${found} instead of ${expected}`);
    const [, word = ""] = content.split(" ");
    const query = { query: word, collection_id: collectionId, owner_id: OWNER };
    const search = await untilAnswered("POST", "/rag/query", query, {});
    expectStatus(search, `search for ${word}`, 200);
    const results: readonly { payload: { content: string } }[] = search.json.results ?? [];
    const hits = results.filter(({ payload }) => payload.content.includes(`${word} `));
    if (hits.length !== (isDeleted ? 0 : 1)) problems.push(`${word} was found ${hits.length} times`);
  };

  const running = Array.from({ length: clients }, (_, at) =>
    runClient(String(at)).catch((error: unknown) => void problems.push(String(error))),
  );
  return {
    known,
    problems,
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
