import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DocumentChange } from "../../../src/kb/store/changes.ts";
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

/** The events of webhooks against the feed of changes. */
export function webhookEventsContract(fixture: StoreFixture): void {
  describe("the events of webhooks", () => {
    it("say of every document what the feed of changes says, in its order, whatever happens to it", () =>
      fc.assert(
        fc.asyncProperty(fc.array(Step, { maxLength: 24 }), async (steps) => {
          const { records } = fixture.store;
          const { id: accountId } = await records.ensureAccount(`webhook events ${++accounts}`);
          const endpointId = fixture.newId();
          await records.addEndpoint(endpointOf(accountId, endpointId), 1);
          const documents: Documents = { accountId, live: [], erased: new Set() };
          for (const step of steps) await run(fixture, step, documents);
          const events = await eventsOf(fixture.store, endpointId);
          const feed = await records.changes({ accountId, cursor: undefined, limit: 1000 });
          // A create in the background is reported when it has its text.
          const finished = feed?.changes.filter(({ kind, version }) => kind !== "created" || version > 0);
          expect(events).toEqual(finished?.map(said));
          const telling = events.filter(({ path, sha256 }) => path !== null || sha256 !== null);
          expect(telling.filter(({ id }) => documents.erased.has(id))).toEqual([]);
        }),
        { numRuns: 40 },
      ));
  });
}

/** The facts that both tell. */
function said({ resourceId: id, at, version, revision, sha256, path, ownerId, kind }: DocumentChange) {
  return { id, at, version, revision, sha256, path, ownerId, isDeleted: kind === "deleted" };
}

function endpointOf(accountId: string, id: string): NewEndpoint {
  const secrets = [{ secret: "whsec_x", untilMs: null }];
  const url = "https://example.com/";
  return {
    id,
    accountId,
    url,
    description: "",
    events: EventType.options,
    secrets,
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
  readonly erased: Set<string>;
}

async function run(
  { store: { records, queue }, resource }: StoreFixture,
  { kind, document, word }: Step,
  { accountId, live, erased }: Documents,
): Promise<void> {
  const id = live[document];
  if (id === undefined) {
    const made = resource(word, { accountId, ...(word !== "sand" && { metadata: { path: `${word}.md` } }) });
    if (kind === "create") await records.createResource(made, wordsOnly(word));
    else if (kind === "queue") await records.enqueueCreate({ ...made, content: "" }, JOB);
    else return;
    live[document] = made.id;
    return;
  }
  const at = { accountId, id, nowIso: LATER };
  switch (kind) {
    case "text":
      await records.updateResource({ ...at, content: `${word} anew` }, wordsOnly(`${word} anew`));
      break;
    case "title":
      await records.updateResource({ ...at, title: word }, undefined);
      break;
    case "path":
      await records.updateResource({ ...at, metadata: { path: `${word}/moved.md` } }, undefined);
      break;
    case "later":
      await records.enqueueUpdate(at, JOB);
      break;
    case "fail": {
      const due = await queue.due({ queue: "ingest", nowMs: DUE_MS, perLine: 1000 });
      for (const { number } of due) {
        const job = await queue.lease({ number, worker: "w", nowMs: DUE_MS });
        if (job?.name === id) await records.failJob(job, { code: "internal", message: word }, LATER);
      }
      break;
    }
    case "delete":
      await records.deleteResource(at);
      live[document] = undefined;
      break;
    case "erase":
      await records.eraseResources({ accountId, ids: [id], hidesOwner: word === "tide", nowIso: LATER });
      erased.add(id);
      live[document] = undefined;
      break;
    case "create":
    case "queue":
  }
}
