import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { newHexId } from "../../../src/lib/ids.ts";
import { openTurns } from "../../../src/lib/turns.ts";
import { queueUpdate, updateResource } from "../../../src/kb/jobs/change.ts";
import { openJobRunner } from "../../../src/kb/jobs/job-runner.ts";
import { openLeases } from "../../../src/kb/queue/leases.ts";
import type { Loop } from "../../../src/kb/queue/loop.ts";
import { LEASE_MS, type LeasedJob } from "../../../src/kb/queue/queue.ts";
import { openWaits } from "../../../src/kb/queue/waits.ts";
import { queueCreate } from "../../../src/kb/resources/create.ts";
import type { KnowledgeBase } from "../../../src/kb/resources/knowledge-base.ts";
import { nowIso } from "../../../src/kb/resources/knowledge-base.ts";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import { removeResource } from "../../../src/kb/resources/remove.ts";
import type { Ports, Store } from "../../../src/kb/store/store.ts";
import { joinPages } from "../../../src/kb/ingest/extract/extract.ts";
import { wordsOnly } from "../store/store-fixture.ts";
import { withMethods } from "../store/with-methods.ts";

const DOCUMENTS = 2;
const WORKERS = 2;
/** The last documents are PDFs, of which a part is written before the whole. */
const PDFS = 1;
/** A worker renews its leases in this time, and checks the queue at least once in three times this time. */
const TICK_MS = LEASE_MS / 3;
const TICKS_MAX = 120;
/** Turns of the event loop without a call of the store, after which a worker has nothing to do before its next check. */
const IDLE_TURNS = 10;
/** Steps for which a stopped process stands still. */
const STOPPED_STEPS = 8;
const STORE_FAILURES: Readonly<Record<"store failure" | "busy store", Error>> = {
  "store failure": new Error("The store fails."),
  "busy store": new Refusal("ingest_busy", "The store is busy.", { retryAfterSeconds: 1 }),
};
const DIRECT: ReadonlySet<string> = new Set(["direct title", ...Object.keys(STORE_FAILURES)]);
/** Statements of a worker before the one that fails: those of a change of a document whose queued change runs first. */
const STATEMENTS_MAX = 4;
/** Where the addresses of uploaded files begin. */
const FILES_URL = "http://files.test/";

const STEPS = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "text",
      "text",
      "text",
      "broken text",
      "broken text",
      "busy text",
      "title",
      "title",
      "direct title",
      "direct title",
      "settings",
      "delete",
      "crash",
      "lease expiry",
      "stop",
      "stop",
      "store failure",
      "store failure",
      "busy store",
      "busy store",
      "pause",
    ),
    document: fc.nat({ max: DOCUMENTS - 1 }),
    worker: fc.nat({ max: WORKERS - 1 }),
    /** Whether the worker is woken after the step. */
    isWoken: fc.boolean(),
    /** Statements of the worker before the one that fails. */
    statements: fc.nat({ max: STATEMENTS_MAX }),
    /** Turns of the event loop until the next step. */
    turns: fc.integer({ min: 0, max: 30 }),
  }),
  { minLength: 1, maxLength: 25, size: "max" },
);

/** What a client was answered for. */
interface Accepted {
  readonly id: string;
  readonly isPdf: boolean;
  /** Of the last change of the title, and of those that were made at the same time. */
  titles: ReadonlySet<string>;
  /** Titles of direct changes that have no answer, by the worker that makes them. */
  readonly unanswered: Map<string, Worker>;
  content: string;
  chunkSize: number;
  isDeleted: boolean;
}

interface Worker {
  readonly kb: KnowledgeBase;
  readonly runner: Loop;
  isAlive: boolean;
  /** Steps until it goes on, as a process that was stopped does. Others have its leases by then. */
  stoppedSteps: number;
  /** What one of its next statements rejects with. */
  failure: { readonly error: Error; statements: number } | undefined;
  /** Work of its jobs in progress. */
  readonly calls: number;
}

/**
 * Lets others work before a statement of a worker's transaction. Rejects after a crash of the worker. A store whose transactions can
 * interleave calls it before each statement; in SQLite a transaction runs in one piece.
 */
export const beforeStatement = new AsyncLocalStorage<() => Promise<void>>();

/**
 * The law of the queue of documents: after any changes, deletes, failures, crashes and lost leases, among several workers, interleaved at
 * every statement, each document has its newest version or a reported failure, and the queue is empty. Then nothing wakes the workers
 * but their own timers. `open` returns handles on one store.
 */
export function queueLaw(open: () => Promise<readonly Store[]>, numRuns: number): void {
  it(
    "leaves each document at its newest version or with a reported failure, and the queue empty",
    { timeout: 120_000 },
    async () => {
      const stores = await open();
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
      try {
        await fc.assert(
          fc.asyncProperty(STEPS, fc.integer(), (steps, seed) => checkRun(stores, steps, openChance(seed))),
          // A smaller example would often pass: the database also decides what interleaves.
          { numRuns, endOnFailure: true },
        );
      } finally {
        vi.useRealTimers();
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
  const onProblem = (error: unknown): void => {
    if (!isStoreFailure(error)) problems.push(error);
  };
  /** Why documents failed, by id. */
  const failures = new Map<string, string>();
  const workers: Worker[] = [];
  const start = (at: number): Worker => {
    const store = stores[at % stores.length];
    if (store === undefined) throw new TypeError("there is no store");
    const worker = openWorker(noteFailures(store, failures), clock, chance, onProblem);
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
  const direct: { readonly worker: Worker; readonly done: Promise<void> }[] = [];

  for (const [at, step] of steps.entries()) {
    const document = documents[step.document];
    const worker = workers[step.worker];
    if (document === undefined || worker === undefined) throw new TypeError("a step names nothing");
    if (step.kind === "crash") {
      Object.assign(worker, { isAlive: false, stoppedSteps: 0 });
      retired.push(worker);
      start(step.worker);
    } else if (step.kind === "lease expiry" || step.kind === "stop") {
      clock.aheadMs += LEASE_MS;
      if (step.kind === "stop") worker.stoppedSteps = STOPPED_STEPS;
    } else if (!document.isDeleted) await change(kbOf(step.worker), accountId, document, step.kind, at);
    if (step.kind === "store failure" || step.kind === "busy store")
      worker.failure = { error: STORE_FAILURES[step.kind], statements: step.statements };
    if (DIRECT.has(step.kind))
      direct.push({ worker, done: changeTitle(worker, accountId, document, at).catch(onProblem) });
    // Others are not woken, and a wake-up may be lost: a regular check finds what waits.
    if (step.isWoken) workers[step.worker]?.runner.wake();
    for (let turn = 0; turn < step.turns; turn += 1) await setImmediate();
    for (const each of workers) each.stoppedSteps = Math.max(0, each.stoppedSteps - 1);
  }

  for (const worker of workers) worker.stoppedSteps = 0;
  await drain(first, workers, clock);
  await Promise.all(direct.filter(({ worker }) => worker.isAlive).map(({ done }) => done));
  for (const worker of workers) worker.failure = undefined;
  for (const { runner, kb, isAlive } of [...workers, ...retired]) {
    await runner.close(1);
    const closed = kb.leases.close();
    if (isAlive) await closed;
  }
  expect(problems).toEqual([]);
  expect(await first.queue.figures("ingest", accountId)).toMatchObject({ waiting: 0 });
  for (const document of documents) await checkDocument(first, accountId, document, failures);
}

async function create(kb: KnowledgeBase, accountId: string, at: number): Promise<Accepted> {
  const [title, content] = [`title ${at}`, `first words of ${at}`];
  const isPdf = at >= DOCUMENTS - PDFS;
  const text = await textOf(kb, accountId, isPdf, content);
  const body = { title, description: "", ...text, collection_details: "fastest" } as const;
  const { id } = await queueCreate(kb, { accountId, body, context: {} });
  const titles = new Set([title]);
  const whole = isPdf ? joinPages(pagesOf(content)).text : content;
  return { id, isPdf, titles, unanswered: new Map(), content: whole, chunkSize: 1000, isDeleted: false };
}

/** Returns the pages of a PDF. Only the first one has a text layer. */
function pagesOf(content: string): string[] {
  return ["A typed page.", content];
}

/** Returns a text as the field of a request: its content, or the address of a PDF. */
async function textOf(
  kb: KnowledgeBase,
  accountId: string,
  isPdf: boolean,
  content: string,
): Promise<{ readonly content: string } | { readonly url: string }> {
  if (!isPdf) return { content };
  const token = encodeURIComponent(`${newHexId(kb.nowMs())} ${content}`);
  const facts = {
    name: "a.pdf",
    mediaType: "application/pdf",
    sizeBytes: 1,
    sha256: "",
    createdAt: nowIso(kb),
  };
  await kb.records.addFile({ token, accountId, ...facts });
  return { url: `${FILES_URL}${token}/a.pdf` };
}

/** Returns the titles that may be the last one after a change: direct changes that are still made may come before it or after it. */
function titlesAfter({ unanswered }: Accepted, title: string): ReadonlySet<string> {
  return new Set([title, ...[...unanswered].flatMap(([each, { isAlive }]) => (isAlive ? each : []))]);
}

/** Changes a title without the queue, as a request to a worker's process does. Ends with the answer, or never after a crash. */
async function changeTitle(worker: Worker, accountId: string, document: Accepted, at: number): Promise<void> {
  const title = `direct title ${at}`;
  const { id, unanswered } = document;
  unanswered.set(title, worker);
  const before = (document.titles = new Set([...document.titles, title]));
  try {
    await updateResource(worker.kb, { accountId, id, body: { title }, context: {} });
    unanswered.delete(title);
    if (document.titles === before) document.titles = titlesAfter(document, title);
  } catch (error) {
    // Another worker has the queued change of the document, or it is deleted.
    if (!(error instanceof Refusal || isStoreFailure(error))) throw error;
    document.titles = new Set([...document.titles].filter((each) => each !== title));
  } finally {
    unanswered.delete(title);
  }
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
  const putTitle = async (): Promise<void> => {
    const title = `new title ${at}`;
    await put({ title });
    document.titles = titlesAfter(document, title);
  };
  switch (kind) {
    case "text":
    case "broken text":
    case "busy text": {
      const content = `${kind} ${at}`;
      await put(await textOf(kb, accountId, document.isPdf, content));
      document.content = document.isPdf ? joinPages(pagesOf(content)).text : content;
      // It stays although the text fails.
      if (kind === "broken text") await putTitle();
      break;
    }
    case "title":
    // A direct change of the title comes after it, and works on it.
    case "store failure":
    case "busy store":
      await putTitle();
      break;
    case "settings":
      await put({ settings: { chunkSize: 600 + at } });
      document.chunkSize = 600 + at;
      break;
    case "delete":
      await removeResource(kb, accountId, id);
      document.isDeleted = true;
      break;
    case "direct title":
    case "crash":
    case "lease expiry":
    case "stop":
    case "pause":
  }
}

/** Moves the clock until the queue is empty. Only the timers of the workers wake them. */
async function drain(store: Store, workers: readonly Worker[], clock: { aheadMs: number }): Promise<void> {
  for (let ticks = 0; ticks < TICKS_MAX; ticks += 1) {
    for (let idle = 0; idle < IDLE_TURNS; idle += 1) {
      if (workers.some(({ calls }) => calls > 0)) idle = 0;
      await setImmediate();
    }
    if ((await store.queue.figures("ingest", undefined)).waiting === 0) return;
    clock.aheadMs += TICK_MS;
    vi.advanceTimersByTime(TICK_MS);
  }
}

async function checkDocument(
  store: Store,
  accountId: string,
  { id, titles, content, chunkSize, isDeleted }: Accepted,
  failures: ReadonlyMap<string, string>,
): Promise<void> {
  const found = await store.records.resource({ accountId, id });
  if (isDeleted) {
    expect(found).toBeUndefined();
    return;
  }
  expect(titles).toContain(found?.title);
  expect(found).toMatchObject({ settings: { chunkSize } });
  // A later change of the settings may have succeeded with the text before.
  if (content.includes("broken"))
    expect(found?.statusMessage ?? failures.get(id)).toMatch(/cannot be read|crashed/);
  else if (found?.status === "error") expect(found.statusMessage).toContain("crashed");
  else expect(found).toMatchObject({ status: "chunked", content, warning: null });
}

/** Returns the same store, which notes the failures of documents. */
function noteFailures(store: Store, failures: Map<string, string>): Store {
  return withMethods(store, {
    records: {
      failJob: async (job, failure, at) => {
        await store.records.failJob(job, failure, at);
        failures.set((job as LeasedJob).name, failure.message); // the runner has whole jobs
      },
      updateResource: async (fields, chunking, sameTransaction) => {
        const updated = await store.records.updateResource(fields, chunking, sameTransaction);
        const failure = sameTransaction?.failure;
        if (failure !== undefined) failures.set(fields.id, failure.message);
        return updated;
      },
    },
  });
}

/** Opens a worker. It takes some turns before and after each call of the store, and before each statement; after a crash none returns. */
function openWorker(
  store: Store,
  clock: { readonly aheadMs: number },
  chance: () => number,
  onProblem: (error: unknown) => void,
): Worker {
  const state: Omit<Worker, "kb" | "runner" | "calls"> & { calls: number } = {
    isAlive: true,
    stoppedSteps: 0,
    failure: undefined,
    calls: 0,
  };
  const turns = async (): Promise<void> => {
    for (let left = Math.floor(chance() * 4); left > 0; left -= 1) await setImmediate();
  };
  const pause = async (): Promise<void> => {
    await turns();
    // Not within a transaction: the database ends one that stands still, because others wait for its locks.
    while (state.stoppedSteps > 0) await setImmediate();
    if (!state.isAlive) await new Promise<never>(() => undefined);
  };
  const fail = (): void => {
    const { failure } = state;
    if (failure === undefined || failure.statements-- > 0) return;
    state.failure = undefined;
    throw failure.error;
  };
  const statement = async (): Promise<void> => {
    await turns();
    if (!state.isAlive) throw new Error("the worker has crashed");
    fail();
  };
  const slowly =
    <A extends unknown[], R>(work: (...given: A) => R) =>
    async (...given: A): Promise<Awaited<R>> => {
      state.calls += 1;
      try {
        await pause();
        return await beforeStatement.run(statement, () => work(...given));
      } finally {
        await pause();
        state.calls -= 1;
      }
    };
  const slow = <P extends keyof Ports>(port: P): Ports[P] =>
    new Proxy(store[port], {
      get: (target, name, receiver) => {
        const method: unknown = Reflect.get(target, name, receiver);
        return typeof method === "function"
          ? slowly((...given) => {
              fail();
              return Reflect.apply(method, target, given);
            })
          : method;
      },
    });
  let busy = 2;
  const client = clientOf({ ...store, records: slow("records"), queue: slow("queue") }, clock);
  const kb: KnowledgeBase = {
    ...client,
    leases: openLeases(client.queue, `worker ${chance()}`, client.steadyMs, onProblem),
    // The law needs no other part of the pipeline.
    ingest: {
      textOf: async (token, _mediaType, _form, requester) => {
        const pages = pagesOf(decodeURIComponent(token).replace(/^\w+ /, ""));
        const fileMetadata = { pages: pages.length };
        await slowly(() => undefined)();
        await requester?.onPart?.({ texts: pages.with(1, ""), reading: [2], fileMetadata });
        await slowly(() => undefined)();
        return { ...joinPages(pages), fileMetadata };
      },
      chunk: slowly((text: string, _settings, about) => {
        if (text.includes("broken")) throw new Refusal("damaged_pdf", "The text cannot be read.");
        if (text.includes("busy") && --busy > 0)
          throw new Refusal("ingest_busy", "The model is busy.", { retryAfterSeconds: 1 });
        return { ...wordsOnly(text), ...(about?.warning === undefined ? {} : { warning: about.warning }) };
      }),
    } as Partial<KnowledgeBase["ingest"]> as KnowledgeBase["ingest"],
  };
  const runner = openJobRunner(kb, onProblem);
  return Object.assign(state, { kb, runner });
}

/** The parts of a knowledge base that changes of texts use. */
export function clientOf(store: Store, clock: { readonly aheadMs: number }): KnowledgeBase {
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
    addresses: {
      classify: ({ href }) => ({ kind: "token", token: href.slice(FILES_URL.length).replace("/a.pdf", "") }),
      urlOf: ({ token }) => `${FILES_URL}${token}/a.pdf`,
    } as Partial<KnowledgeBase["addresses"]> as KnowledgeBase["addresses"],
    files: {
      use: ({ token }, work) => work(token),
      hold: (_token, work) => work(),
      holds: () => Promise.resolve(true),
    } as Partial<KnowledgeBase["files"]> as KnowledgeBase["files"],
    isEnding: () => false,
    explain,
    nowMs,
    steadyMs: nowMs,
  } as Partial<KnowledgeBase> as KnowledgeBase; // as above
}

/** Whether a store failed as a step says. PostgreSQL's names the cause. */
function isStoreFailure(error: unknown): boolean {
  const isOurs = (given: unknown): boolean => Object.values<unknown>(STORE_FAILURES).includes(given);
  return isOurs(error) || (error instanceof Error && isOurs(error.cause));
}

/** Returns numbers in [0, 1) that follow from a seed. */
function openChance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
