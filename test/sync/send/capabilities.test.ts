import { describe, expect, it } from "vitest";
import { openCapabilities } from "../../../src/sync/send/capabilities.ts";
import type { Later } from "../../../src/sync/send/remote/answer.ts";
import type { DeclaredCapabilities } from "../../../src/sync/send/remote/collection-requests.ts";
import type { Remote } from "../../../src/sync/send/remote/remote.ts";

const DAY_MS = 24 * 3_600_000;
const RETRY_MS = 600_000;
const signal = new AbortController().signal;

interface Conditions {
  /** What the ledger says. */
  readonly readsMails?: boolean;
  readonly takesMetadata?: boolean;
  readonly askedMs?: number;
  readonly hasIds?: boolean;
  readonly metadataAgainMs?: number;
  /** What the service declares; undefined: it names no collections. */
  readonly declares?: Partial<DeclaredCapabilities> | undefined;
  /** The service does not answer. */
  readonly later?: Later;
  readonly answers?: Promise<void>;
}

/** The ledger's record, and a service that declares what it offers. */
function open(conditions: Conditions = {}) {
  const { hasIds = true, metadataAgainMs = DAY_MS, answers = Promise.resolve() } = conditions;
  const ledger = {
    readsMails: conditions.readsMails ?? false,
    takesMetadata: conditions.takesMetadata ?? false,
    askedMs: conditions.askedMs,
    rereads: 0,
  };
  const world = { asked: 0, begun: 0, nowMs: 5 * DAY_MS };
  const collections: Remote["collections"] = async () => {
    world.asked += 1;
    await answers;
    if (conditions.later !== undefined) return conditions.later;
    const declared = "declares" in conditions ? conditions.declares : {};
    const nothing = { readsMails: false, takesMetadata: false, takesLocations: false, purges: false };
    capabilities.learn(declared && { ...nothing, ...declared });
    return { kind: "done", value: "unsupported" };
  };
  const capabilities = openCapabilities(
    {
      write: async (change: () => void) => {
        await Promise.resolve();
        change();
      },
      sources: {
        declared: () => ({
          readsMails: ledger.readsMails,
          takesMetadata: ledger.takesMetadata,
          atMs: ledger.askedMs,
        }),
        setDeclared: ({ atMs, ...declared }) => Object.assign(ledger, { ...declared, askedMs: atMs }),
      },
      files: { rereadTextMails: () => void (ledger.rereads += 1) },
    },
    { collections },
    {
      hasIds: () => hasIds,
      now: () => world.nowMs,
      nowMs: () => world.nowMs,
      againMs: metadataAgainMs,
    },
  );
  capabilities.onBegin(() => (world.begun += 1));
  return { capabilities, ledger, world };
}

it("relies on the ledger until the service is asked", () => {
  const before = open({ readsMails: true, takesMetadata: true }).capabilities;
  expect([before.readsMails(), before.takesMetadata()]).toEqual([true, true]);
  const never = open().capabilities;
  expect([never.readsMails(), never.takesMetadata(), never.takesLocations()]).toEqual([false, false, false]);
});

describe("reading mails", () => {
  const declares = { readsMails: true };

  it("has mails that were sent as text read again when the service begins to read mails", async () => {
    const { capabilities, ledger, world } = open({ declares });
    await capabilities.check(signal);
    expect(capabilities.readsMails()).toBe(true);
    expect({ ...ledger, ...world }).toMatchObject({ readsMails: true, rereads: 1, begun: 1 });
    world.nowMs += DAY_MS;
    await capabilities.askAgain(signal);
    expect({ ...ledger, ...world }).toMatchObject({ asked: 2, rereads: 1, begun: 1 });
  });

  it("asks once for all simultaneous callers whether the service reads mails", async () => {
    const { capabilities, ledger, world } = open({ declares });
    await Promise.all([1, 2, 3].map(() => capabilities.check(signal)));
    expect([world.asked, ledger.rereads]).toEqual([1, 1]);
  });

  it.each([{ readsMails: false }, undefined])(
    "records that the service no longer reads mails, and has none read again: %j",
    async (declared) => {
      const { capabilities, ledger, world } = open({ readsMails: true, declares: declared });
      await capabilities.check(signal);
      expect(capabilities.readsMails()).toBe(false);
      expect({ ...ledger, ...world }).toMatchObject({ readsMails: false, rereads: 0, begun: 0 });
    },
  );
});

describe("taking metadata", () => {
  const declares = { takesMetadata: true };

  it("asks when nobody knows whether the service takes metadata, then once a day, and records it", async () => {
    const { capabilities, ledger, world } = open({ declares });
    await capabilities.askAgain(signal);
    await capabilities.askAgain(signal);
    expect({ ...ledger, ...world }).toMatchObject({
      takesMetadata: true,
      asked: 1,
      begun: 1,
      askedMs: 5 * DAY_MS,
    });
    world.nowMs += DAY_MS;
    await capabilities.askAgain(signal);
    expect(world).toMatchObject({ asked: 2, begun: 1 });
  });

  it("asks once while the answer is outstanding, and again ten minutes after none came", async () => {
    let fail = (): void => undefined;
    const answers = new Promise<void>((_resolve, reject) => {
      fail = () => reject(new Error("unreachable"));
    });
    const { capabilities, world } = open({ declares, answers });
    const asking = Promise.allSettled([capabilities.askAgain(signal), capabilities.askAgain(signal)]);
    expect(world.asked).toBe(1);
    fail();
    await asking;
    world.nowMs += RETRY_MS - 1;
    await capabilities.askAgain(signal);
    expect(world.asked).toBe(1);
    world.nowMs += 1;
    await Promise.allSettled([capabilities.askAgain(signal)]);
    expect(world.asked).toBe(2);
  });

  it.each([{ hasIds: false }, { metadataAgainMs: Infinity }])(
    "does not ask for metadata while the ids of the collections are unknown, nor where nobody wants to know: %j",
    async (conditions) => {
      const { capabilities, world } = open({ declares, ...conditions });
      await capabilities.askAgain(signal);
      expect(world.asked).toBe(0);
    },
  );

  it("asks again after the clock was set back", async () => {
    const { capabilities, world } = open({ declares, askedMs: 6 * DAY_MS });
    await capabilities.askAgain(signal);
    expect(world.asked).toBe(1);
  });

  it("keeps sending metadata while something answers that names no collections", async () => {
    const { capabilities, world } = open({ takesMetadata: true, declares: undefined });
    await capabilities.askAgain(signal);
    expect([capabilities.takesMetadata(), world.begun]).toEqual([true, 0]);
  });

  it("stops sending metadata when the service no longer declares that it takes it", async () => {
    const { capabilities, world } = open({ takesMetadata: true });
    await capabilities.askAgain(signal);
    expect([capabilities.takesMetadata(), world.begun]).toEqual([false, 0]);
  });
});

describe("taking locations", () => {
  it.each<[declares: Conditions["declares"], taken: boolean]>([
    [{ takesLocations: true }, true],
    [{}, false],
    [undefined, false],
  ])("asks once per process whether the service takes locations: %j", async (declares, taken) => {
    const { capabilities, world } = open({ declares });
    expect(await capabilities.check(signal)).toBeUndefined();
    await capabilities.check(signal);
    expect([capabilities.takesLocations(), world.asked]).toEqual([taken, 1]);
  });

  it("returns why the service does not say whether it takes locations, and asks again", async () => {
    const later: Later = { kind: "later", acted: "maybe", blame: "request", reason: "busy" };
    const { capabilities, world } = open({ later });
    expect(await capabilities.check(signal)).toEqual({ ...later, acted: "no" });
    await capabilities.check(signal);
    expect(world.asked).toBe(2);
  });
});
