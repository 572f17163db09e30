import { describe, expect, it, vi } from "vitest";
import { sameKeyRestMs, untilDecided } from "../../../src/sync/send/attempt.ts";
import type { ActionContext } from "../../../src/sync/send/context.ts";
import type { Later } from "../../../src/sync/send/remote/answer.ts";

const later = (more: Partial<Later> = {}): Later => ({
  kind: "later",
  acted: "no",
  blame: "request",
  reason: "busy",
  ...more,
});

/** Sends a request that gets these answers. Returns the end, and the numbers of requests, rests and probes. */
async function decided(
  answers: readonly (Later | "again" | { readonly kind: "done" })[],
  isUp = true,
): Promise<{
  readonly kind: string;
  readonly requests: number;
  readonly rests: number;
  readonly probes: number;
}> {
  let [requests, rests, probes] = [0, 0, 0];
  const context = {
    signal: new AbortController().signal,
    // A wait ends at once.
    yieldSlot: async () => void (await Promise.resolve((rests += 1))),
    remote: {
      collections: async () => {
        probes += 1;
        return await Promise.resolve(isUp ? { kind: "done" } : later());
      },
    },
  } as unknown as ActionContext; // What is used of it.
  const { kind } = await untilDecided<{ readonly kind: "done" }>(
    context,
    async () => await Promise.resolve(answers[requests++] ?? { kind: "done" }),
  );
  return { kind, requests, rests, probes };
}

describe("sending a request until an answer decides", () => {
  it.each([
    ["an answer ends it", [], { kind: "done", requests: 1, rests: 0, probes: 0 }],
    ["it is sent again as the action wants", ["again", "again"], { kind: "done", requests: 3 }],
    [
      "a failure of the service is not the request's",
      Array.from({ length: 9 }, () => later({ blame: "service" })),
      { kind: "done", requests: 10, probes: 0 },
    ],
    [
      "three failures of its own end it if the service answers otherwise",
      [later(), later(), later()],
      { kind: "later", requests: 3, probes: 1 },
    ],
    [
      "a forbidden request is not repeated",
      [later({ isForbidden: true })],
      { kind: "later", requests: 1, probes: 0 },
    ],
    [
      "a request with the same key that the service works on is waited for",
      Array.from({ length: 9 }, () => later({ isInFlight: true, retryAfterMs: 1 })),
      { kind: "done", requests: 10, rests: 9, probes: 0 },
    ],
  ] as const)("%s", async (_what, answers, expected) => {
    expect(await decided(answers)).toMatchObject(expected);
  });

  it("goes on while the service answers nothing else either", async () => {
    expect(await decided([later(), later(), later(), later()], false)).toMatchObject({
      kind: "done",
      requests: 5,
    });
  });

  it("calls an earlier request with the same key failed when the service works on it for longer than it may", async () => {
    const clock = vi.spyOn(performance, "now");
    for (const ms of [0, 6 * 3_600_000]) clock.mockReturnValueOnce(ms);
    clock.mockReturnValue(6 * 3_600_000 + 1);
    try {
      const inFlight = later({ isInFlight: true });
      expect(await decided(Array.from({ length: 9 }, () => inFlight))).toMatchObject({
        kind: "later",
        requests: 5,
        rests: 2,
      });
    } finally {
      clock.mockRestore();
    }
  });

  it.each([
    [0, 1, 250],
    [0, 1000, 1000],
    [80_000, 1000, 10_000],
    [3_600_000, 1000, 30_000],
    [3_600_000, 60_000, 60_000],
    [0, 86_400_000, 600_000],
  ])("waits longer for longer work: after %d ms, asked for %d ms, for %d ms", (sinceMs, askedMs, restMs) => {
    expect(sameKeyRestMs(sinceMs, askedMs)).toBe(restMs);
  });
});
