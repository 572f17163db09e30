import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AskedId } from "../../../src/sync/actions/collections.ts";
import type { ActionContext, ActionSource } from "../../../src/sync/actions/context.ts";
import { labelOf } from "../../../src/sync/actions/observe.ts";
import { digestOf } from "../../../src/formats/digest.ts";
import type { Observed } from "../../../src/sync/ledger/files/observed.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { Deletion } from "../../../src/sync/ledger/intents/deletes.ts";
import { openSettler, type Settler } from "../../../src/sync/adopt/recover.ts";
import type { Reply } from "../../../src/sync/remote/answer.ts";
import type { ListEnd } from "../../../src/sync/remote/collection-requests.ts";
import type { Remote } from "../../../src/sync/remote/remote.ts";
import type { Taken } from "../../../src/sync/remote/resource-requests.ts";
import { TIMING } from "../../../src/sync/plan/timing.ts";
import type { ResourceRecord } from "../../../src/wire/resource.ts";
import type { Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

const HOUR_MS = 3_600_000;

let dir: string;
let ledger: Ledger;
let stop: AbortController;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kbsync-recover-"));
  ledger = openLedger(dir, "s");
  stop = new AbortController();
});
afterEach(() => {
  stop.abort(new Error("stopped"));
  ledger.abandon();
  rmSync(dir, { recursive: true, force: true });
});

const observed = (ownerId = "o"): Observed => ({
  entry: { path: "a.txt", sizeBytes: 4, mtimeMs: 1, ctimeMs: 1, ino: 1 },
  rulesKey: 1,
  hash: "h",
  digest: digestOf("text"),
  title: "a.txt",
  label: labelOf("a.txt", "d"),
  extractorVersion: 1,
  shape: {
    kind: "content",
    tier: "fastest",
    ownerId,
    settings: { strategy: "recursive", chunkSize: 10, chunkOverlap: 1 },
  },
  fileUrl: undefined,
});
const record = { _id: "doc", title: "a.txt", description: "d", content: "text" } as ResourceRecord;
/** The service's record of a resource that exists. */
const there = (docId: string): Reply<ResourceRecord> => ({
  kind: "done",
  value: { ...record, _id: docId, isDeleted: false },
});

/** The settler of a source; `list` stands for the service. */
function settlerOf(
  id: number,
  list: () => Reply<ListEnd> | Promise<Reply<ListEnd>>,
  once: boolean,
  {
    elapsedMs,
    shows = true,
    createdMs = () => Date.now(),
    isAdopting = () => false,
    isBusy = () => false,
    asked = [],
    read = () => ({ kind: "gone" }),
    update = () => ({ kind: "gone" }),
    description = "d",
    listed = {},
    following = [],
    underWay = { seenMs: -Infinity },
    stopped = stop.signal,
  }: {
    readonly elapsedMs?: () => number;
    readonly shows?: boolean;
    readonly createdMs?: () => number;
    readonly isAdopting?: () => boolean;
    readonly isBusy?: () => boolean;
    /** Results of the first requests for the collection's id. */
    readonly asked?: AskedId[];
    /** Resources of creates that the service accepted and is still processing. */
    readonly following?: readonly string[];
    /** When the service last reported a request as under way. */
    readonly underWay?: ActionContext["underWay"];
    /** The service's record of a resource by its id; default: 404. */
    readonly read?: (docId: string) => Reply<ResourceRecord>;
    /** Its answer to a title that it has. */
    readonly update?: () => Reply<Taken>;
    /** Description of the resource that the list shows. */
    readonly description?: string;
    readonly listed?: Partial<ResourceRecord>;
    /** Aborts when the source stops; default: together with its requests. */
    readonly stopped?: AbortSignal;
  } = {},
): { settler: Settler; deletions: Deletion[]; warnings: string[]; checks: string[] } {
  const deletions: Deletion[] = [];
  const checks: string[] = [];
  const warnings: string[] = [];
  const remote: Pick<Remote, "list" | "read" | "update"> = {
    read: async (docId) => await Promise.resolve(read(docId)),
    update: async () => await Promise.resolve(update()),
    list: async (_, onResource) => {
      const reply = await list();
      if (reply.kind === "done" && shows)
        onResource({ ...record, ...listed, description, createdAt: new Date(createdMs()).toISOString() });
      return await Promise.resolve(reply);
    },
  };
  const context = {
    ledger,
    remote,
    collections: { ask: async () => await Promise.resolve(asked.shift() ?? { id: "c" }) },
    now: Date.now,
    report: () => undefined,
    timing: TIMING,
    random: () => 0,
    following: new Set(following),
    underWay,
    signal: stop.signal,
  } as unknown as ActionContext;
  const source = {
    id,
    deleteLater: (deletion: Deletion) => deletions.push(deletion),
    checkAgain: (path: string) => checks.push(path),
  } as unknown as ActionSource;
  const onWarning = (error: Error): number => warnings.push(error.message);
  const clock = elapsedMs === undefined ? {} : { elapsedMs };
  const settler = openSettler({
    context,
    source,
    stopped,
    once,
    onWarning,
    isAdopting,
    isBusy,
    ...clock,
  });
  return { settler, deletions, warnings, checks };
}

describe("extra resources of a create", () => {
  const done = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
  const doubtBeside = async (ownerId: string): Promise<readonly Deletion[]> => {
    const [first, second] = [
      ledger.sources.open("/one", "o", "fastest"),
      ledger.sources.open("/two", ownerId, "fastest"),
    ];
    await ledger.write(() => {
      ledger.intents.doubt(ledger.intents.create(first.id, "key-1", Date.now() - 1000, observed()), null);
      ledger.intents.create(second.id, "key-2", Date.now() - 1000, observed(ownerId));
    });
    await ledger.write(() => ledger.files.insert(first.id, "kept", "agreed", observed()));
    const { settler, deletions } = settlerOf(first.id, done, true, { read: there });
    await settler.checkDoubts();
    settler.stop();
    return deletions;
  };
  /** Adds a doubt of a file that has the resource `kept`. */
  const doubtOf = async (state: "agreed" | "failed" = "agreed"): Promise<number> => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.files.insert(id, "kept", state, observed());
      ledger.intents.doubt(ledger.intents.create(id, "key", Date.now() - 1000, observed()), "kept");
      ledger.intents.again(1);
    });
    return id;
  };
  const answered = async (source: number, docId: string): Promise<void> => {
    const facts = { source, path: "a.txt", from: undefined, docId, durationMs: 0, message: undefined };
    await ledger.write(() =>
      ledger.activity.add({ ...facts, atMs: Date.now(), action: "update", outcome: "done" }),
    );
  };

  it("an extra resource stays if it is of a create that the service accepted and is still processing", async () => {
    const id = await doubtOf();
    const { settler, deletions } = settlerOf(id, done, true, { read: there, following: ["doc"] });
    await settler.checkDoubts();
    settler.stop();
    expect(deletions).toEqual([]);
  });

  it("an extra resource stays until the file's own has answered a change, if the service shows none by its id", async () => {
    const id = await doubtOf();
    await answered(id, "kept");
    const { settler, deletions, checks } = settlerOf(id, done, false);
    expect(await settler.checkDoubts()).toBe(true);
    // An answer from before it was seen proves nothing about now.
    expect([deletions, checks, ledger.files.living(id, "a.txt")?.state]).toEqual([[], ["a.txt"], "unsure"]);
    await ledger.write(() => ledger.files.agree(1, "kept", observed()));
    await answered(id, "kept");
    expect(await settler.checkDoubts()).toBe(false);
    settler.stop();
    expect(deletions).toMatchObject([{ docId: "doc" }]);
  });

  it("an extra resource is deleted soon after the file's own has answered, however long that took", async () => {
    const id = await doubtOf();
    const { settler, deletions } = settlerOf(id, done, false);
    // The interval between checks has grown to half a minute.
    for (let checks = 0; checks < 5; checks += 1) expect(await settler.checkDoubts()).toBe(true);
    await ledger.write(() => ledger.files.agree(1, "kept", observed()));
    await answered(id, "kept");
    settler.answered("another");
    settler.answered("kept");
    await vi.waitFor(() => expect(deletions).toMatchObject([{ docId: "doc" }]), { timeout: 5000 });
    settler.stop();
  });

  it("an extra resource lets an update finish whose answer confirms the file's own", async () => {
    const id = await doubtOf();
    await ledger.write(() => ledger.files.setState(1, "unsure"));
    const { settler, checks } = settlerOf(id, done, false, { isBusy: () => true });
    expect([await settler.checkDoubts(), await settler.checkDoubts()]).toEqual([true, true]);
    settler.stop();
    // Another check would give it up, and send it under another key to a service that is still processing it.
    expect(checks).toEqual([]);
  });

  it("an extra resource stays for good if nothing can confirm the file's own", async () => {
    const id = await doubtOf("failed");
    let elapsedMs = 0;
    const { settler, deletions } = settlerOf(id, done, false, { elapsedMs: () => elapsedMs });
    await settler.checkDoubts();
    elapsedMs = 500_000;
    expect(await settler.checkDoubts()).toBe(true);
    settler.stop();
    expect([deletions, ledger.intents.doubts(id).length]).toEqual([[], 1]);
  });

  it("an extra resource is deleted when the file's own answers to its title, though the file can no longer be sent", async () => {
    const id = await doubtOf("failed");
    const { settler, deletions } = settlerOf(id, done, false, {
      update: () => ({ kind: "done", value: { isInFlight: false, warning: undefined, record } }),
    });
    expect(await settler.checkDoubts()).toBe(false);
    settler.stop();
    expect(deletions).toHaveLength(1);
  });

  it("an extra resource stays when the service reports by its id that the file's own is deleted", async () => {
    const id = await doubtOf();
    await answered(id, "kept");
    const gone = (docId: string): Reply<ResourceRecord> => ({
      kind: "done",
      value: { ...record, _id: docId, isDeleted: true },
    });
    const { settler, deletions, checks } = settlerOf(id, done, false, { read: gone });
    await settler.checkDoubts();
    settler.stop();
    expect([deletions, checks]).toEqual([[], ["a.txt"]]);
  });

  it.each([
    { does: "stays when it has another description: it is somebody else's", stored: undefined, deleted: 0 },
    {
      does: "is deleted when the service gave the file's own that description, too",
      stored: "D",
      deleted: 1,
    },
  ])("an extra resource $does", async ({ stored, deleted }) => {
    const id = await doubtOf();
    const label = labelOf("a.txt", "D");
    if (stored !== undefined) {
      await ledger.write(() => {
        ledger.drift.setStored(1, { digest: "", label });
      });
    }
    const { settler, deletions } = settlerOf(id, done, false, { read: there, description: "D" });
    expect(await settler.checkDoubts()).toBe(false);
    settler.stop();
    expect(deletions).toHaveLength(deleted);
  });

  it("an extra resource stays when another file received it meanwhile", async () => {
    const id = await doubtOf();
    const other = ledger.sources.open("/two", "o", "fastest").id;
    const read = (docId: string): Reply<ResourceRecord> => {
      ledger.note(() => ledger.files.insert(other, "doc", "agreed", observed()));
      return there(docId);
    };
    const { settler, deletions } = settlerOf(id, done, false, { read });
    await settler.checkDoubts();
    settler.stop();
    expect([deletions, ledger.intents.deletes(id)]).toEqual([[], []]);
  });

  it("an extra resource stays when its file received another resource meanwhile", async () => {
    const id = await doubtOf();
    const read = (docId: string): Reply<ResourceRecord> => {
      ledger.note(() => ledger.files.agree(1, "newer", observed()));
      return there(docId);
    };
    const { settler, deletions } = settlerOf(id, done, false, { read });
    expect(await settler.checkDoubts()).toBe(true);
    settler.stop();
    expect(deletions).toEqual([]);
  });

  it("an extra resource is deleted though the file was renamed since, and nothing remains under the old name", async () => {
    const id = await doubtOf();
    await ledger.write(() => ledger.files.repath([{ id: 1, to: "b.txt" }]));
    const { settler, deletions } = settlerOf(id, done, false, { read: there });
    await settler.checkDoubts();
    settler.stop();
    expect([deletions, ledger.files.living(id, "a.txt")]).toMatchObject([[{ docId: "doc" }], undefined]);
  });

  it("an extra resource is deleted without a request when this ledger deleted the file's own", async () => {
    const id = await doubtOf();
    await ledger.write(() => {
      ledger.files.remove(1);
      ledger.intents.deleted(ledger.intents.delete(id, "a.txt", "kept"), "kept");
    });
    const { settler, deletions } = settlerOf(id, done, false);
    await settler.checkDoubts();
    settler.stop();
    expect(deletions).toMatchObject([{ docId: "doc" }]);
  });

  it("a resource that this ledger deleted before is neither adopted nor deleted again", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.intents.create(id, "key", Date.now() - 1000, observed());
      ledger.intents.deleted(ledger.intents.delete(id, "a.txt", "doc"), "doc");
    });
    const { settler, deletions } = settlerOf(id, done, false);
    await settler.recover();
    settler.stop();
    expect([deletions, ledger.files.living(id, "a.txt")]).toEqual([[], undefined]);
  });

  it("a resource is not an extra one while another source's equal create is in flight", async () => {
    expect(await doubtBeside("o")).toEqual([]);
  });

  it("an extra resource is deleted when the other create is for another owner", async () => {
    expect(await doubtBeside("other")).toMatchObject([{ docId: "doc" }]);
  });
});

describe("two sources that were making the same when the process died", () => {
  it("two sources that were making the same when the process died share nothing: one gets the resource, the other makes its own", async () => {
    const done = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const ids = ["/one", "/two"].map((path) => ledger.sources.open(path, "o", "fastest").id);
    await ledger.write(() => {
      for (const id of ids) ledger.intents.create(id, `key-${id}`, Date.now() - 1000, observed());
    });
    const settlers = ids.map((id) => settlerOf(id, done, false));
    await Promise.all(settlers.map(({ settler }) => settler.recover()));
    for (const { settler } of settlers) settler.stop();
    ledger.flush();
    expect(ids.filter((id) => ledger.files.living(id, "a.txt")?.docId === "doc")).toHaveLength(1);
    expect(ids.flatMap((id) => ledger.intents.doubts(id))).toHaveLength(1);
    expect(settlers.flatMap(({ deletions }) => deletions)).toEqual([]);
  });
});

describe("interrupted creates", () => {
  it("an interrupted create takes no resource from a file that an adoption gave one, whatever the list shows", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.intents.create(id, "key", Date.now(), observed());
      ledger.files.insert(id, "adopted", "agreed", observed());
    });
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler, deletions } = settlerOf(id, list, false, { read: there });
    await settler.recover();
    settler.stop();
    expect(deletions).toEqual([]);
    expect(ledger.files.living(id, "a.txt")).toMatchObject({ docId: "adopted", state: "agreed" });
  });

  it("what an interrupted create made goes when an adoption gave its file an older resource", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.intents.create(id, "key", Date.now(), observed());
      ledger.files.insert(id, "adopted", "agreed", observed(), { atMs: Date.now() - HOUR_MS });
    });
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler, deletions } = settlerOf(id, list, false, { read: there });
    await settler.recover();
    await settler.checkDoubts();
    settler.stop();
    expect(deletions).toMatchObject([{ docId: "doc" }]);
    expect(ledger.files.living(id, "a.txt")).toMatchObject({ docId: "adopted", state: "agreed" });
  });

  it("an interrupted create gives its file a resource with other chunk settings as one to replace", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => ledger.intents.create(id, "key", Date.now() - 1000, observed()));
    const listed = { settings: { strategy: "recursive", chunkSize: 20, chunkOverlap: 2 } };
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler, checks } = settlerOf(id, list, true, { listed });
    await settler.recover();
    settler.stop();
    const row = ledger.files.get(ledger.files.living(id, "a.txt")?.id ?? 0);
    expect(row).toMatchObject({ docId: "doc", state: "unsure", shape: listed });
    expect(checks).toEqual(["a.txt"]);
  });

  it("an interrupted create is sent again if the resource may be of an earlier text with other blanks", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      const earlier = { ...observed(), hash: "of the same text with blanks at its end" };
      ledger.intents.doubt(ledger.intents.create(id, "key-1", Date.now() - 2000, earlier), null);
      ledger.intents.create(id, "key-2", Date.now() - 1000, observed());
    });
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler, checks } = settlerOf(id, list, true, { read: there });
    await settler.recover();
    settler.stop();
    expect([checks, ledger.files.living(id, "a.txt")]).toMatchObject([
      ["a.txt"],
      { docId: "doc", state: "unsure" },
    ]);
    expect(ledger.intents.isFound("doc", observed())).toBe(false);
  });

  it("an interrupted create is not settled by an equal resource that is older", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => void ledger.intents.create(id, "key", Date.now(), observed()));
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler } = settlerOf(id, list, false, { createdMs: () => Date.now() - HOUR_MS });
    await settler.recover();
    settler.stop();
    expect(ledger.files.ownsDoc("doc")).toBe(false);
  });
});

describe("a clock that was set between a create and its recovery", () => {
  it("a clock that was set does not hide what a create made: the intent retains the offset of its time", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    // Set back by an hour since: the intent seems to be in the future, and the service an hour ahead.
    const intentMs = Date.now() + HOUR_MS;
    await ledger.write(() => {
      ledger.intents.setClockOffset(0);
      ledger.intents.create(id, "key", intentMs, observed());
    });
    const list = (): Reply<ListEnd> => ({
      kind: "done",
      value: { clockOffsetMs: HOUR_MS, isPaged: false },
    });
    // Another answer may have shown the present offset already.
    await ledger.write(() => ledger.intents.setClockOffset(HOUR_MS));
    const { settler } = settlerOf(id, list, false, { createdMs: () => intentMs + 10 });
    await settler.recover();
    settler.stop();
    expect(ledger.files.ownsDoc("doc")).toBe(true);
  });

  it("a clock offset is remembered by further processes while the create is open", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    const intentMs = Date.now() + HOUR_MS;
    await ledger.write(() => {
      ledger.intents.setClockOffset(0);
      ledger.intents.doubt(ledger.intents.create(id, "key", intentMs, observed()), null);
    });
    const list = (): Reply<ListEnd> => ({
      kind: "done",
      value: { clockOffsetMs: HOUR_MS, isPaged: false },
    });
    for (const shows of [false, true]) {
      ledger.close();
      ledger = openLedger(dir, "s");
      const { settler } = settlerOf(id, list, false, { shows, createdMs: () => intentMs + 10 });
      await settler.checkDoubts();
      settler.stop();
    }
    expect(ledger.files.ownsDoc("doc")).toBe(true);
    expect(ledger.files.living(id, "a.txt")?.docId).toBe("doc");
  });
});

describe("a service that gives no clear answer about its collections", () => {
  const settle = async (atMs: number, offsetMs: number): Promise<"adopted" | "absent"> => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.intents.setClockOffset(offsetMs);
      ledger.intents.create(id, "key", atMs, observed());
      ledger.intents.setClockOffset(0);
    });
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler } = settlerOf(id, list, false, { asked: [{ id: undefined, why: "unclear" }] });
    const [intent] = ledger.intents.creates(id);
    if (intent === undefined) throw new Error("no intent");
    try {
      return await settler.settle(intent);
    } finally {
      settler.stop();
    }
  };

  it("a service without a clear answer about its collections is asked again before a create is sent again, though the clock was set forward by an hour", async () => {
    expect(await settle(Date.now() - HOUR_MS - 1000, HOUR_MS)).toBe("adopted");
  });

  it("a service without a clear answer about its collections is not asked after an hour, though the clock was set back", async () => {
    expect(await settle(Date.now() + HOUR_MS, -2 * HOUR_MS - 1000)).toBe("absent");
  });
});

describe("creates in doubt", () => {
  it("a create in doubt does not end by a single pass whose clock was set forward since", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => {
      ledger.intents.setClockOffset(HOUR_MS);
      ledger.intents.doubt(ledger.intents.create(id, "key", Date.now() - HOUR_MS - 1000, observed()), null);
      ledger.intents.setClockOffset(0);
    });
    const { settler } = settlerOf(id, done, true, { shows: false });
    await settler.checkDoubts();
    settler.stop();
    expect(ledger.intents.doubts(id)).toHaveLength(1);
  });

  const done = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
  const doubt = async (atMs: number): Promise<number> => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => ledger.intents.doubt(ledger.intents.create(id, "key", atMs, observed()), null));
    return id;
  };

  it.each(["parked", "failed"] as const)(
    "a create in doubt gives its late resource to its file, which is %s without one",
    async (state) => {
      const id = await doubt(Date.now() - 1000);
      const trouble = { rulesKey: 1, state, sure: true, code: "no_answer", message: "no answer" };
      await ledger.write(() => ledger.files.trouble(id, undefined, { entry: observed().entry, ...trouble }));
      const { settler, deletions } = settlerOf(id, done, false);
      await settler.checkDoubts();
      settler.stop();
      expect(deletions).toEqual([]);
      expect(ledger.files.living(id, "a.txt")).toMatchObject({ docId: "doc", state: "agreed" });
    },
  );

  it("a create in doubt takes no other create with it when two checks run at once", async () => {
    const id = await doubt(Date.now() - 1000);
    let elapsedMs = 0;
    const slow = Promise.withResolvers<Reply<ListEnd>>();
    const answers = [done(), done(), slow.promise];
    const list = () => answers.shift() ?? done();
    const { settler } = settlerOf(id, list, false, { elapsedMs: () => elapsedMs, shows: false });
    await settler.checkDoubts();
    elapsedMs = HOUR_MS;
    const checks = [settler.checkDoubts(), settler.checkDoubts()];
    // The first one ends the doubt, and its id is reused.
    await checks[0];
    const another = { ...observed(), title: "another.txt" };
    await ledger.write(() => void ledger.intents.create(id, "new-key", Date.now(), another));
    slow.resolve(done());
    await checks[1];
    settler.stop();
    ledger.flush();
    expect(ledger.intents.creates(id)).toMatchObject([{ key: "new-key" }]);
  });

  it("a create in doubt does not end before the service has reported no request as under way for an hour", async () => {
    const id = await doubt(Date.now() - 1000);
    let elapsedMs = 0;
    const underWay = { seenMs: -Infinity };
    const { settler } = settlerOf(id, done, false, { elapsedMs: () => elapsedMs, shows: false, underWay });
    await settler.checkDoubts();
    underWay.seenMs = HOUR_MS - 1;
    elapsedMs = 2 * HOUR_MS - 2;
    await settler.checkDoubts();
    expect(ledger.intents.doubts(id)).toHaveLength(1);
    elapsedMs = 2 * HOUR_MS;
    await settler.checkDoubts();
    settler.stop();
    expect(ledger.intents.doubts(id)).toEqual([]);
  });

  it("a create in doubt leaves what it made to the candidates while there are any", async () => {
    const id = await doubt(Date.now() - 1000);
    let adopting = true;
    const { settler, deletions } = settlerOf(id, done, false, { isAdopting: () => adopting });
    await settler.checkDoubts();
    expect(deletions).toEqual([]);
    adopting = false;
    await settler.checkDoubts();
    settler.stop();
    expect([deletions, ledger.files.living(id, "a.txt")]).toMatchObject([[], { docId: "doc" }]);
  });

  it("a create in doubt lets the request for its file finish while there are candidates", async () => {
    const id = await doubt(Date.now() - 1000);
    let isBusy = true;
    const { settler, checks } = settlerOf(id, done, false, { isAdopting: () => true, isBusy: () => isBusy });
    await settler.checkDoubts();
    // Given up, it would be in doubt again, and the file would be read and sent again each second.
    expect(checks).toEqual([]);
    isBusy = false;
    await settler.checkDoubts();
    settler.stop();
    expect(checks).toEqual(["a.txt"]);
  });

  it("a create in doubt is checked until it can make no resource any more, however long ago it was planned", async () => {
    const id = await doubt(Date.now() - 86_400_000);
    let elapsedMs = 0;
    const { settler } = settlerOf(id, done, false, { elapsedMs: () => elapsedMs, shows: false });
    await settler.checkDoubts();
    elapsedMs = HOUR_MS - 1;
    await settler.checkDoubts();
    expect(ledger.intents.doubts(id)).toHaveLength(1);
    elapsedMs = HOUR_MS;
    await settler.checkDoubts();
    settler.stop();
    expect(ledger.intents.doubts(id)).toEqual([]);
  });
});

describe("a question for the collection's id that nobody answers", () => {
  it("a request for the collection's id that nothing answers is repeated before anything is settled, however old the create", async () => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    const intentMs = Date.now() - 7_200_000;
    await ledger.write(() => void ledger.intents.create(id, "key", intentMs, observed()));
    const asked: AskedId[] = [
      { id: undefined, why: "unanswered" },
      { id: undefined, why: "unanswered" },
    ];
    const list = (): Reply<ListEnd> => ({ kind: "done", value: { clockOffsetMs: 0, isPaged: false } });
    const { settler } = settlerOf(id, list, false, { asked });
    await settler.recover();
    settler.stop();
    expect([asked, ledger.files.ownsDoc("doc")]).toEqual([[], true]);
  });
});

describe("a list that the service refuses", () => {
  const refused = (): Reply<never> => ({ kind: "refused", code: "http_400", message: "no such list" });
  const open = async (): Promise<number> => {
    const { id } = ledger.sources.open("/one", "o", "fastest");
    await ledger.write(() => void ledger.intents.create(id, "key", Date.now() - 1000, observed()));
    return id;
  };

  it("a refused list ends a single pass with the service's words", async () => {
    const { settler } = settlerOf(await open(), refused, true);
    await expect(settler.recover()).rejects.toMatchObject({
      code: "list_refused",
      message: expect.stringContaining("no such list") as string,
    });
  });

  it("a refused list is requested again by a running daemon, which reports it once", async () => {
    let asked = 0;
    const answers = (): Reply<ListEnd> =>
      asked++ < 2 ? refused() : { kind: "done", value: { clockOffsetMs: 0, isPaged: false } };
    const { settler, warnings } = settlerOf(await open(), answers, false);
    await settler.recover();
    expect(warnings).toEqual([expect.stringContaining("no such list")]);
    expect(ledger.files.ownsDoc("doc")).toBe(true);
  });
});

it("reads a list that breaks off again and again only until its source stops", async () => {
  const { id } = ledger.sources.open("/one", "o", "fastest");
  await ledger.write(() => void ledger.intents.create(id, "key", Date.now() - 1000, observed()));
  const source = new AbortController();
  let lists = 0;
  const list = (): Reply<ListEnd> => {
    lists += 1;
    if (lists === 2) source.abort(new Error("stopping"));
    // A settler that continues after the stop would do so for ever.
    if (lists > 2) stop.abort(new Error("too late"));
    return { kind: "later", acted: "maybe", blame: "request", reason: "broken off" };
  };
  const { settler } = settlerOf(id, list, false, { stopped: source.signal });
  await expect(settler.recover()).rejects.toSatisfy(() => lists === 2 && source.signal.aborted);
});

describe("a create that got no answer while the collection's id is unknown", () => {
  const PAGE = "<html>One moment, please</html>";
  const INSTEAD: Readonly<Record<string, Fault>> = {
    collections: { kind: "html" },
    create: { kind: "html" },
  };
  let world: World;
  beforeEach(async () => {
    world = await openWorld({ collections: true });
    world.write("a.txt", "text a");
  });
  afterEach(() => world.end());

  it.each([
    { name: "a proxy's page", fault: { kind: "answer", status: 200, body: PAGE } },
    { name: "a proxy's 502", fault: { kind: "answer", status: 502, body: PAGE } },
    { name: "silence", fault: { kind: "lose-answer" } },
  ] as const)(
    "a create without an answer is not sent again while $name answers the request for the collection's id",
    async ({ fault }) => {
      let questions = 0;
      world.service.fault = ({ operation }) => {
        if (operation === "collections") questions += 1;
        if (operation === "collections" && questions > 1 && questions < 4) return fault;
        // The first request comes before the create, whose answer contains no id.
        return questions === 1 ? INSTEAD[operation] : undefined;
      };
      // Something that answers in the service's place is asked again after a tenth of a second at the soonest.
      await world.sync({ timing: { retryMs: 110 } });
      expect(world.service.count("create")).toBe(1);
      expect(world.service.live()).toHaveLength(1);
    },
  );

  it("a create without an answer is given up by a pass that meets such pages for too long, and settled by the next", async () => {
    world.service.fault = () => ({ kind: "html" });
    await expect(world.sync()).rejects.toMatchObject({ code: "list_refused" });
    world.service.fault = () => undefined;
    await world.sync();
    expect(world.service.count("create")).toBe(1);
    expect(world.service.live()).toHaveLength(1);
  });
});
