import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openTurns } from "../../../src/lib/turns.ts";
import { queueUpdate } from "../../../src/kb/jobs/change.ts";
import { openJobRunner } from "../../../src/kb/jobs/job-runner.ts";
import type { About } from "../../../src/kb/ingest/ingest.ts";
import { openLeases } from "../../../src/kb/queue/leases.ts";
import type { Loop } from "../../../src/kb/queue/loop.ts";
import { LEASE_MS, type LeasedJob } from "../../../src/kb/queue/queue.ts";
import { openWaits } from "../../../src/kb/queue/waits.ts";
import { queueCreate } from "../../../src/kb/resources/create.ts";
import type { KnowledgeBase } from "../../../src/kb/resources/knowledge-base.ts";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import { removeResource } from "../../../src/kb/resources/remove.ts";
import type { Ports, Store } from "../../../src/kb/store/store.ts";
import type { Settings } from "../../../src/wire/primitives.ts";
import { wordsOnly } from "../store/store-fixture.ts";
import { withMethods } from "../store/with-methods.ts";

const DOCUMENTS = 3;
const WORKERS = 2;
/** Longer than any wait of a job. */
const LONG_MS = 11 * 60_000;
const JUMPS_MAX = 40;

const STEPS = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "text",
      "text",
      "text",
      "broken text",
      "busy text",
      "title",
      "settings",
      "delete",
      "crash",
      "lease expiry",
      "pause",
    ),
    document: fc.nat({ max: DOCUMENTS - 1 }),
    worker: fc.nat({ max: WORKERS - 1 }),
    /** Turns of the event loop until the next step. */
    turns: fc.integer({ min: 0, max: 30 }),
  }),
  { minLength: 1, maxLength: 25 },
);

/** What a client was answered for. */
interface Accepted {
  readonly id: string;
  title: string;
  content: string;
  chunkSize: number;
  isDeleted: boolean;
}

interface Worker {
  readonly kb: KnowledgeBase;
  readonly runner: Loop;
  isAlive: boolean;
}

/**
 * The law of the queue of documents: after any changes, deletes, failures, crashes and lost leases, among several workers, each document
 * has its newest version or a reported failure, and the queue is empty. `stores` are handles on one store.
 */
export function queueLaw(open: () => Promise<readonly Store[]>, numRuns: number): void {
  it(
    "leaves each document at its newest version or with a reported failure, and the queue empty",
    { timeout: 120_000 },
    async () => {
      const stores = await open();
      try {
        await fc.assert(
          fc.asyncProperty(STEPS, fc.integer(), (steps, seed) => checkRun(stores, steps, openChance(seed))),
          { numRuns },
        );
      } finally {
        for (const store of stores) await store.close();
      }
    },
  );
}

type Step = typeof STEPS extends { generate(...given: never[]): { value: readonly (infer S)[] } } ? S : never;

async function checkRun(
  stores: readonly Store[],
  steps: readonly Step[],
  chance: () => number,
): Promise<void> {
  const clock = { aheadMs: 0 };
  const problems: unknown[] = [];
  /** Why documents failed, by id. */
  const failures = new Map<string, string>();
  const workers: Worker[] = [];
  const start = (at: number): Worker => {
    const store = stores[at % stores.length];
    if (store === undefined) throw new TypeError("there is no store");
    const worker = openWorker(noteFailures(store, failures), clock, chance, (error) => problems.push(error));
    workers[at] = worker;
    worker.runner.wake();
    return worker;
  };
  const retired: Worker[] = [];
  for (let at = 0; at < WORKERS; at += 1) start(at);
  const [first] = stores;
  if (first === undefined) throw new TypeError("there is no store");
  const { id: accountId } = await first.records.ensureAccount("law");
  const kbOf = (at: number): KnowledgeBase => {
    const worker = workers[at % WORKERS];
    if (worker === undefined) throw new TypeError("there is no worker");
    return { ...clientOf(stores[at % stores.length] ?? first, clock), leases: worker.kb.leases };
  };
  const documents = await Promise.all(
    Array.from({ length: DOCUMENTS }, (_, at) => create(kbOf(at), accountId, at)),
  );

  for (const [at, step] of steps.entries()) {
    const document = documents[step.document];
    const worker = workers[step.worker];
    if (document === undefined || worker === undefined) throw new TypeError("a step names nothing");
    if (step.kind === "crash") {
      worker.isAlive = false;
      retired.push(worker);
      start(step.worker);
    } else if (step.kind === "lease expiry") clock.aheadMs += LEASE_MS;
    else if (!document.isDeleted) await change(kbOf(step.worker), accountId, document, step.kind, at);
    // Others are not woken: their regular check finds what waits.
    workers[step.worker]?.runner.wake();
    for (let turn = 0; turn < step.turns; turn += 1) await setImmediate();
  }

  await drain(first, workers, clock);
  for (const { runner, kb } of [...workers, ...retired]) {
    await runner.close(1);
    void kb.leases.close();
  }
  expect(problems).toEqual([]);
  expect(await first.queue.figures("ingest", accountId)).toMatchObject({ waiting: 0 });
  for (const document of documents) await checkDocument(first, accountId, document, failures);
}

async function create(kb: KnowledgeBase, accountId: string, at: number): Promise<Accepted> {
  const [title, content] = [`title ${at}`, `first words of ${at}`];
  const body = { title, description: "", content, collection_details: "fastest" } as const;
  const { id } = await queueCreate(kb, { accountId, body, context: {} });
  return { id, title, content, chunkSize: 1000, isDeleted: false };
}

async function change(
  kb: KnowledgeBase,
  accountId: string,
  document: Accepted,
  kind: Step["kind"],
  at: number,
): Promise<void> {
  const { id } = document;
  const put = (body: object) => queueUpdate(kb, { accountId, id, body, context: {} });
  switch (kind) {
    case "text":
    case "broken text":
    case "busy text": {
      const content = `${kind} ${at}`;
      await put({ content });
      document.content = content;
      break;
    }
    case "title":
      await put({ title: `new title ${at}` });
      document.title = `new title ${at}`;
      break;
    case "settings":
      await put({ settings: { chunkSize: 600 + at } });
      document.chunkSize = 600 + at;
      break;
    case "delete":
      await removeResource(kb, accountId, id);
      document.isDeleted = true;
      break;
    case "crash":
    case "lease expiry":
    case "pause":
  }
}

/** Lets the workers end all work. Ends waits and the leases of crashed workers when nothing else is left. */
async function drain(store: Store, workers: readonly Worker[], clock: { aheadMs: number }): Promise<void> {
  for (let jumps = 0; jumps < JUMPS_MAX; jumps += 1) {
    for (let polls = 0; polls < 20; polls += 1) {
      if ((await store.queue.figures("ingest", undefined)).waiting === 0) return;
      await sleep(2);
    }
    clock.aheadMs += LONG_MS;
    for (const { runner } of workers) runner.wake();
  }
}

async function checkDocument(
  store: Store,
  accountId: string,
  { id, title, content, chunkSize, isDeleted }: Accepted,
  failures: ReadonlyMap<string, string>,
): Promise<void> {
  const found = await store.records.resource({ accountId, id });
  if (isDeleted) {
    expect(found).toBeUndefined();
    return;
  }
  expect(found).toMatchObject({ title, settings: { chunkSize } });
  // A later change of the settings may have succeeded with the text before.
  if (content.startsWith("broken"))
    expect(found?.statusMessage ?? failures.get(id)).toMatch(/cannot be read|crashed/);
  else if (found?.status === "error") expect(found.statusMessage).toContain("crashed");
  else expect(found).toMatchObject({ status: "chunked", content });
}

/** Returns the same store, which notes the failures of documents. */
function noteFailures(store: Store, failures: Map<string, string>): Store {
  return withMethods(store, {
    records: {
      failJob: async (job, failure, nowIso) => {
        await store.records.failJob(job, failure, nowIso);
        failures.set((job as LeasedJob).name, failure.message); // the runner has whole jobs
      },
    },
  });
}

/** Opens a worker. Each of its calls of the store takes some turns; after a crash none returns. */
function openWorker(
  store: Store,
  clock: { readonly aheadMs: number },
  chance: () => number,
  onProblem: (error: unknown) => void,
): Worker {
  const state = { isAlive: true };
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(chance() * 4); turns > 0; turns -= 1) await setImmediate();
    if (!state.isAlive) await new Promise<never>(() => undefined);
  };
  const slowly = <P extends keyof Ports>(port: P): Ports[P] =>
    new Proxy(store[port], {
      get: (target, name, receiver) => {
        const method: unknown = Reflect.get(target, name, receiver);
        if (typeof method !== "function") return method;
        return async (...given: unknown[]) => {
          await pause();
          const result: unknown = await Reflect.apply(method, target, given);
          await pause();
          return result;
        };
      },
    });
  let busy = 2;
  const client = clientOf({ ...store, records: slowly("records"), queue: slowly("queue") }, clock);
  const kb: KnowledgeBase = {
    ...client,
    leases: openLeases(client.queue, `worker ${chance()}`, client.steadyMs, onProblem),
    // The law needs no other part of the pipeline.
    ingest: {
      chunk: async (text: string, _settings: Settings, { requester }: About) => {
        await pause();
        requester?.signal?.throwIfAborted();
        if (text.startsWith("broken")) throw new Refusal("damaged_pdf", "The text cannot be read.");
        if (text.startsWith("busy") && --busy > 0)
          throw new Refusal("ingest_busy", "The model is busy.", { retryAfterSeconds: 1 });
        return wordsOnly(text);
      },
    } as unknown as KnowledgeBase["ingest"],
  };
  const runner = openJobRunner(kb, onProblem);
  return Object.assign(state, { kb, runner });
}

/** The parts of a knowledge base that changes of texts use. */
function clientOf(store: Store, clock: { readonly aheadMs: number }): KnowledgeBase {
  const nowMs = (): number => Math.floor(Date.now() + clock.aheadMs);
  const explain: KnowledgeBase["explain"] = (error) => {
    if (!(error instanceof Refusal)) throw error;
    return { code: error.code, message: error.message, retryAfterSeconds: error.retryAfterSeconds };
  };
  return {
    records: store.records,
    queue: store.queue,
    turns: openTurns(),
    jobWaits: openWaits(),
    limits: { contentBytes: 1000, uploadBytes: 1000 },
    isEnding: () => false,
    explain,
    nowMs,
    steadyMs: nowMs,
  } as Partial<KnowledgeBase> as KnowledgeBase; // as above
}

/** Returns numbers in [0, 1) that follow from a seed. */
function openChance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
