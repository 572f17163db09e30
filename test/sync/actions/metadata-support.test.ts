import { describe, expect, it } from "vitest";
import { openMetadataSupport } from "../../../src/sync/actions/metadata-support.ts";
import type { Remote } from "../../../src/sync/remote/remote.ts";

const DAY_MS = 86_400_000;
const signal = new AbortController().signal;

/** The ledger's record about metadata, and a service that reports whether it takes some. */
function open({
  takes = false,
  namesNone = false,
  answer = true,
  hasIds = true,
  againMs = DAY_MS,
  askedMs,
  answers = Promise.resolve(),
}: {
  takes?: boolean;
  /** It names no collections. */
  namesNone?: boolean;
  answer?: boolean;
  hasIds?: boolean;
  againMs?: number;
  askedMs?: number;
  answers?: Promise<void>;
} = {}) {
  const kept = { takes, askedMs, asked: 0, begun: 0, nowMs: 5 * DAY_MS, warnings: [] as string[] };
  const ledger = {
    note: (change: () => void) => change(),
    write: async (change: () => void) => {
      await Promise.resolve();
      change();
    },
    sources: {
      takesMetadata: () => kept.takes,
      setTakesMetadata: (now: boolean) => void (kept.takes = now),
      metadataAskedMs: () => kept.askedMs,
      setMetadataAskedMs: (atMs: number) => void (kept.askedMs = atMs),
    },
  };
  const collections: Remote["collections"] = async () => {
    kept.asked += 1;
    await answers;
    support.learn(namesNone ? undefined : answer);
    return { kind: "done", value: "unsupported" };
  };
  const support = openMetadataSupport(
    ledger,
    { collections },
    {
      hasIds: () => hasIds,
      now: () => kept.nowMs,
      nowMs: () => kept.nowMs,
      againMs,
      onWarning: ({ message }) => kept.warnings.push(message),
    },
  );
  support.onBegin(() => (kept.begun += 1));
  return { support, kept };
}

describe("whether a service takes metadata", () => {
  it("is what the ledger says before the service is asked", () => {
    expect(open({ takes: true }).support.isOffered()).toBe(true);
    expect(open().support.isOffered()).toBe(false);
  });

  it("is asked when nobody knows, then once a day, and recorded", async () => {
    const { support, kept } = open();
    await support.askAgain(signal);
    await support.askAgain(signal);
    expect(kept).toMatchObject({ takes: true, asked: 1, begun: 1, askedMs: 5 * DAY_MS });
    kept.nowMs += DAY_MS;
    await support.askAgain(signal);
    expect(kept).toMatchObject({ asked: 2, begun: 1 });
  });

  it("is asked once while the answer is outstanding, and again ten minutes after none came", async () => {
    let fail = (): void => undefined;
    const answers = new Promise<void>((_resolve, reject) => {
      fail = () => reject(new Error("unreachable"));
    });
    const { support, kept } = open({ answers });
    const asking = Promise.allSettled([support.askAgain(signal), support.askAgain(signal)]);
    expect(kept.asked).toBe(1);
    fail();
    await asking;
    kept.nowMs += 599_999;
    await support.askAgain(signal);
    expect(kept.asked).toBe(1);
    kept.nowMs += 1;
    await Promise.allSettled([support.askAgain(signal)]);
    expect(kept.asked).toBe(2);
  });

  it("is not asked while the ids of the collections are unknown, nor where nobody wants to know", async () => {
    for (const { support, kept } of [open({ hasIds: false }), open({ againMs: Infinity })]) {
      await support.askAgain(signal);
      expect(kept.asked).toBe(0);
    }
  });

  it("is asked again after the clock was set back", async () => {
    const { support, kept } = open({ askedMs: 6 * DAY_MS });
    await support.askAgain(signal);
    expect(kept.asked).toBe(1);
  });

  it("stays as it was while something answers that names no collections", async () => {
    const { support, kept } = open({ takes: true, namesNone: true });
    await support.askAgain(signal);
    expect([support.isOffered(), kept.begun]).toEqual([true, 0]);
  });

  it("ends when the service says so", async () => {
    const { support, kept } = open({ takes: true, answer: false });
    await support.askAgain(signal);
    expect([support.isOffered(), kept.begun]).toEqual([false, 0]);
  });

  it("is warned about once where a service refuses what it offers to take", () => {
    const { support, kept } = open({ takes: true });
    support.refused("a.md", "too odd");
    support.refused("b.md", "too odd");
    expect(kept.warnings).toEqual([
      "the service refuses the metadata of a.md, which is sent without it: too odd",
    ]);
  });
});
