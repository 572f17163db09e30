import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import type { NewEndpoint } from "../../../src/kb/store/webhooks.ts";
import { EventType, ResourceEvent } from "../../../src/wire/event.ts";
import { LATER, type StoreFixture, wordsOnly } from "./store-fixture.ts";

/** One change of one of three documents; one that does not apply to its state does nothing. */
const Step = fc.record({
  kind: fc.constantFrom("create", "queue", "text", "title", "path", "later", "fail", "delete", "erase"),
  document: fc.nat(2),
  word: fc.constantFrom("tide", "moon", "sand"),
});
type Step = typeof Step extends fc.Arbitrary<infer T> ? T : never;
const DUE_MS = Date.parse(LATER);
const JOB = { body: '{"update":{}}', fileToken: null, nowMs: 0, jobsMax: 100, charsMax: 1000 };

let accounts = 0;

/** The facts that an event has. */
interface Said {
  readonly id: string;
  readonly at: string;
  readonly version: number;
  readonly revision: number;
  readonly sha256: string | null;
  readonly path: string | null;
  readonly ownerId: string;
  readonly isDeleted: boolean;
}

/** The events of webhooks against the documents. */
export function webhookEventsContract(fixture: StoreFixture): void {
  describe("the events of webhooks", () => {
    it("say of every document what it was after each change, in their order, whatever happens to it", () =>
      fc.assert(
        fc.asyncProperty(fc.array(Step, { maxLength: 24 }), async (steps) => {
          const { records } = fixture.store;
          const { id: accountId } = await records.ensureAccount(`webhook events ${++accounts}`);
          const endpointId = fixture.newId();
          await records.addEndpoint(endpointOf(accountId, endpointId), 1);
          const documents: Documents = { accountId, live: [], expected: [] };
          for (const step of steps) await run(fixture, step, documents);
          expect(await eventsOf(fixture.store, endpointId)).toEqual(documents.expected);
        }),
        { numRuns: 40 },
      ));
  });
}

/** Reads what an event has to say of a document now. */
async function saidOf({ records }: Store, accountId: string, id: string): Promise<Said> {
  const {
    updatedAt: at,
    content,
    metadata,
    version,
    revision,
    ownerId,
  } = (await records.resource({ accountId, id })) ?? expect.unreachable();
  const sha256 = version === 0 ? null : createHash("sha256").update(content).digest("hex");
  const path = typeof metadata["path"] === "string" ? metadata["path"] : null;
  return { id, at, version, revision, sha256, path, ownerId, isDeleted: false };
}

function endpointOf(accountId: string, id: string): NewEndpoint {
  const url = "https://example.com/";
  return {
    id,
    accountId,
    url,
    description: "",
    events: EventType.options,
    secret: "whsec_x",
    enabled: true,
    nowIso: LATER,
  };
}

/** The events that wait for an endpoint, in the order in which they were queued. */
async function eventsOf({ queue }: Store, endpointId: string) {
  const due = await queue.due({ queue: "webhook", nowMs: DUE_MS, perLine: 1000 });
  const leases = due.toSorted((a, b) => a.number - b.number);
  const events = [];
  for (const { number } of leases) {
    const job = await queue.lease({ number, worker: "w", nowMs: DUE_MS });
    if (job?.line !== endpointId) continue;
    const { body } = JSON.parse(job.body) as { readonly body: string };
    const { type, timestamp: at, data } = ResourceEvent.parse(JSON.parse(body));
    const { _id: id, version, revision, sha256, path, ownerId } = data;
    events.push({ id, at, version, revision, sha256, path, ownerId, isDeleted: type === "resource.deleted" });
  }
  return events;
}

interface Documents {
  readonly accountId: string;
  /** Id of each document; undefined: it does not exist. */
  readonly live: (string | undefined)[];
  /** The events so far. An erasure removes what they say of its document. */
  readonly expected: Said[];
}

async function run(
  { store, resource }: StoreFixture,
  { kind, document, word }: Step,
  documents: Documents,
): Promise<void> {
  const { records, queue } = store;
  const { accountId, live, expected } = documents;
  const id = live[document];
  if (id === undefined) {
    const made = resource(word, { accountId, ...(word !== "sand" && { metadata: { path: `${word}.md` } }) });
    if (kind === "create") {
      await records.createResource(made, wordsOnly(word));
      expected.push(await saidOf(store, accountId, made.id));
    } else if (kind === "queue") await records.enqueueCreate({ ...made, content: "" }, JOB);
    else return;
    live[document] = made.id;
    return;
  }
  const at = { accountId, id, nowIso: LATER };
  switch (kind) {
    case "text":
      await records.updateResource({ ...at, content: `${word} anew` }, wordsOnly(`${word} anew`));
      expected.push(await saidOf(store, accountId, id));
      break;
    case "title":
      await records.updateResource({ ...at, title: word }, undefined);
      expected.push(await saidOf(store, accountId, id));
      break;
    case "path":
      await records.updateResource({ ...at, metadata: { path: `${word}/moved.md` } }, undefined);
      expected.push(await saidOf(store, accountId, id));
      break;
    case "later":
      await records.enqueueUpdate(at, JOB);
      break;
    case "fail": {
      const due = await queue.due({ queue: "ingest", nowMs: DUE_MS, perLine: 1000 });
      for (const { number } of due) {
        const job = await queue.lease({ number, worker: "w", nowMs: DUE_MS });
        if (job?.name !== id) continue;
        await records.failJob(job, { code: "internal", message: word }, LATER);
        expected.push(await saidOf(store, accountId, id));
      }
      break;
    }
    case "delete":
    case "erase": {
      const before = await saidOf(store, accountId, id);
      expected.push({ ...before, at: LATER, revision: before.revision + 1, sha256: null, isDeleted: true });
      live[document] = undefined;
      if (kind === "delete") {
        await records.deleteResource(at);
        break;
      }
      await records.deleteResource(at);
      await records.eraseResource(at);
      const nothing = { sha256: null, path: null };
      for (const each of expected) if (each.id === id) Object.assign(each, nothing);
      break;
    }
    case "create":
    case "queue":
  }
}
