import { describe, expect, it, vi } from "vitest";
import type { ActionContext } from "../../../src/sync/send/context.ts";
import { follow } from "../../../src/sync/send/follow.ts";
import type { Later, Reply } from "../../../src/sync/send/remote/answer.ts";

const { signal } = new AbortController();
const later = (blame: "request" | "service"): Later => ({
  kind: "later",
  acted: "no",
  blame,
  reason: "busy",
});
const shown = (metadata?: Record<string, unknown>, isDeleted = false): Reply<unknown> => ({
  kind: "done",
  value: { _id: "a", isDeleted, metadata },
});
const QUEUED = shown({ status: "queued" });
const GONE: Reply<unknown> = { kind: "gone" };

let asked: number;
/** A service that gives these answers for a resource and repeats the last one. */
function contextOf(answers: readonly Reply<unknown>[], waitsPerSlot = 0): ActionContext {
  asked = 0;
  const read = async (): Promise<unknown> =>
    await Promise.resolve(answers[Math.min(asked++, answers.length - 1)]);
  const yieldSlot = async (wait: (waitsPerSlot: () => number) => Promise<unknown>): Promise<unknown> =>
    await wait(() => waitsPerSlot);
  return { remote: { read }, signal, yieldSlot } as unknown as ActionContext; // What following uses.
}
const never = (): boolean => false;

it("reports that only pictures of a followed resource remain to be read", async () => {
  let reports = 0;
  const reading = shown({ status: "queued", warning: "Pages 1–2 are still being read." });
  const context = contextOf([QUEUED, reading, QUEUED, shown({ status: "chunked" })]);
  await follow({ ...context, onPictures: () => (reports += 1) }, "a", never);
  expect(reports).toBe(1);
});

describe("following a resource", () => {
  it.each<[what: string, answers: Reply<unknown>[], end: Record<string, unknown>, questions: number]>([
    [
      "a followed resource is done when its text is searchable",
      [QUEUED, shown({ status: "chunked" })],
      { kind: "done" },
      2,
    ],
    [
      "a followed resource is done when all of its pages are read",
      [shown({ status: "chunked", warning: "Page 2 is still being read." }), shown({ status: "chunked" })],
      { kind: "done", value: { warning: undefined } },
      2,
    ],
    [
      "a followed resource is done with what the service could not read of it",
      [shown({ warning: "page 2" })],
      { kind: "done", value: { warning: "page 2" } },
      1,
    ],
    [
      "a followed resource is refused with the service's words",
      [shown({ status: "error", message: "damaged" })],
      { kind: "refused", code: "not_taken_in", message: "damaged" },
      1,
    ],
    [
      "a followed resource is refused although the service has no words",
      [shown({ status: "error" })],
      { kind: "refused", message: "the service could not process it" },
      1,
    ],
    [
      "a followed resource is gone when it was deleted meanwhile",
      [QUEUED, shown({}, true)],
      { kind: "gone" },
      2,
    ],
    [
      "a followed resource exists although one answer did not know it yet",
      [GONE, QUEUED, GONE, shown()],
      { kind: "done" },
      4,
    ],
    [
      "a followed resource is requested again while the service is to blame",
      [...Array.from({ length: 9 }, () => later("service")), shown()],
      { kind: "done" },
      10,
    ],
    [
      "a followed resource is given up when three successive answers fail",
      [later("request")],
      { kind: "later", reason: "busy" },
      3,
    ],
    [
      "a followed resource is requested again when two successive answers fail",
      [later("request"), later("request"), QUEUED, later("request"), later("request"), shown()],
      { kind: "done" },
      6,
    ],
    [
      "a followed resource is given up if the service does not report its progress",
      [{ kind: "refused", code: "c", message: "no" }],
      { kind: "later", acted: "maybe", blame: "request" },
      1,
    ],
  ])("%s", async (_what, answers, end, questions) => {
    expect(await follow(contextOf(answers), "a", never)).toMatchObject(end);
    expect(asked).toBe(questions);
  });

  it("a followed resource does not matter any more when something happened to its file", async () => {
    expect(await follow(contextOf([QUEUED], 1), "a", () => true)).toEqual({ kind: "outdated" });
    expect(asked).toBe(0);
  });
});

describe("following a resource for long", () => {
  /** Follows it by a clock that advances by this much at each request. */
  const followFor = async (stepMs: number, answers: readonly Reply<unknown>[]): Promise<unknown> => {
    let nowMs = 0;
    const context = contextOf(answers);
    const { remote } = context;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const read: typeof remote.read = async (docId, reading) => {
      nowMs += stepMs;
      return await remote.read(docId, reading);
    };
    try {
      return await follow({ ...context, remote: { ...remote, read } }, "a", never);
    } finally {
      clock.mockRestore();
    }
  };

  it("a followed resource is gone after nothing but 404 for fifteen seconds", async () => {
    expect(await followFor(5000, [GONE])).toEqual({ kind: "gone" });
    expect(asked).toBe(4);
  });

  it("a followed resource is gone by the time since it last existed", async () => {
    const seen = [GONE, GONE, GONE, QUEUED, GONE, GONE, GONE, shown()];
    expect(await followFor(5000, seen)).toMatchObject({ kind: "done" });
  });

  it("a followed resource is given up after 25 days", async () => {
    expect(await followFor(24 * 3_600_000, [QUEUED])).toMatchObject({
      kind: "later",
      reason: "the service has worked on it for 624 hours",
    });
    expect(asked).toBe(26);
  });
});
