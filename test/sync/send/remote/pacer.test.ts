import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { KbsyncError } from "../../../../src/lib/failure.ts";
import type { Later } from "../../../../src/sync/send/remote/answer.ts";
import {
  openPacer,
  outageWords,
  type Pacer,
  type PacerOptions,
} from "../../../../src/sync/send/remote/pacer.ts";

const { signal } = new AbortController();
const failure = (more: Partial<Later> = {}): Later => ({
  kind: "later",
  acted: "no",
  blame: "service",
  reason: "busy",
  ...more,
});

let nowMs: number;
let pacer: Pacer;
const openTestPacer = (options: Partial<PacerOptions> = {}): Pacer =>
  openPacer({
    widthMax: 8,
    patienceMs: () => Infinity,
    elapsed: () => nowMs,
    timeOfDay: () => nowMs,
    random: () => 0,
    onWidth: () => undefined,
    onTrouble: () => undefined,
    ...options,
  });
beforeEach(() => {
  nowMs = 0;
  pacer = openTestPacer();
});

describe("requests that left before the service asked to wait", () => {
  it("keeps the gate closed when a request that left earlier succeeds", async () => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, failure({ retryAfterMs: 5000 }));
    pacer.succeeded(second);
    expect(pacer.state()).toMatchObject({ kind: "waiting", untilMs: 5000 });
    nowMs = 5000;
    pacer.succeeded(await pacer.enter(signal));
    expect(pacer.state()).toEqual({ kind: "open" });
  });

  it("continues the probe when a request that left earlier ends", async () => {
    const early = [await pacer.enter(signal), await pacer.enter(signal), await pacer.enter(signal)] as const;
    pacer.failed(early[0], failure());
    nowMs = 1000;
    const probe = await pacer.enter(signal);
    let others = 0;
    const abort = new AbortController();
    const waiting = pacer.enter(abort.signal).then(
      () => (others += 1),
      () => undefined,
    );
    pacer.failed(early[1], failure());
    pacer.left(early[2]);
    await new Promise(setImmediate);
    expect(others).toBe(0);
    pacer.succeeded(probe);
    await waiting;
    expect(others).toBe(1);
  });

  it("closes the gate again when an earlier request fails after it opened", async () => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, failure());
    nowMs = 1000;
    pacer.succeeded(await pacer.enter(signal));
    pacer.failed(second, failure());
    expect(pacer.state()).toMatchObject({ kind: "waiting", untilMs: 1125 });
  });

  it("applies the delay that an earlier request brings", async () => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, failure());
    pacer.failed(second, failure({ retryAfterMs: 30_000 }));
    expect(pacer.state()).toMatchObject({ kind: "waiting", untilMs: 30_000 });
  });

  it("applies a delay below the minimum as half of the minimum", async () => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, failure());
    nowMs = 100;
    pacer.failed(second, failure({ retryAfterMs: 10 }));
    expect(pacer.state()).toMatchObject({ kind: "waiting", untilMs: 100 + 125 });
  });
});

describe("the request that goes ahead", () => {
  it.each([
    { ends: "fails", end: (probe: number) => pacer.failed(probe, failure()) },
    { ends: "succeeds", end: (probe: number) => pacer.succeeded(probe) },
  ])("applies a delay that arrived during a probe, though the probe $ends", async ({ end }) => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, failure());
    nowMs = 1000;
    const probe = await pacer.enter(signal);
    pacer.failed(second, failure({ retryAfterMs: 30_000 }));
    end(probe);
    expect(pacer.state()).toMatchObject({ kind: "waiting", untilMs: 31_000 });
    nowMs = 31_000;
    pacer.succeeded(await pacer.enter(signal));
    expect(pacer.state()).toEqual({ kind: "open" });
  });

  it("lets another probe leave after one without information, and closes the gate again after a failed one", async () => {
    pacer.failed(await pacer.enter(signal), failure());
    nowMs = 1000;
    pacer.left(await pacer.enter(signal));
    pacer.failed(await pacer.enter(signal), failure());
    expect(pacer.state()).toMatchObject({ untilMs: 1250 });
  });
});

describe("patience", () => {
  const patient = (): Pacer => openTestPacer({ patienceMs: () => 30_000 });

  it.each([
    ["with a service that answers with failures", {}, 30_000],
    ["with an unreachable address", { unreached: true }, 10_000],
  ])("ends patience %s after its time, also between two attempts", async (_name, more, patienceMs) => {
    const gate = patient();
    gate.failed(await gate.enter(signal), failure({ ...more, retryAfterMs: 3_600_000 }));
    expect(gate.state()).toMatchObject({ kind: "waiting", givesUpMs: patienceMs });
    nowMs = patienceMs - 1;
    let ended: unknown;
    const waiting = gate.enter(signal).catch((error: unknown) => (ended = error));
    await new Promise(setImmediate);
    expect(ended).toBeUndefined();
    // The wait's own timer fires after the remaining millisecond.
    nowMs = patienceMs;
    await waiting;
    expect(ended).toMatchObject({ code: "service_unreachable" });
  });

  it("ends patience also where a key is to be tried again after an hour", async () => {
    const gate = patient();
    const [first, second] = [await gate.enter(signal), await gate.enter(signal)];
    gate.failed(first, failure({ blame: "key", reason: "unknown key" }));
    // A probe is on its way, so this is an answer from before.
    await gate.enter(signal);
    gate.failed(second, failure({ retryAfterMs: 3_600_000 }));
    nowMs = 30_000;
    await expect(gate.enter(signal)).rejects.toMatchObject({ code: "service_unreachable" });
  });

  it("ends patience at once, with the service's words, where a person has to act first", async () => {
    const gate = patient();
    gate.failed(await gate.enter(signal), failure({ reason: "The store is damaged.", hint: "Restore it." }));
    await expect(gate.enter(signal)).rejects.toMatchObject({
      message: "the service cannot work: The store is damaged.",
      hint: "Restore it.",
    });
  });

  it("patience has no end in a running daemon", async () => {
    pacer.failed(await pacer.enter(signal), failure({ unreached: true, retryAfterMs: 1000 }));
    expect(pacer.state()).toEqual({ kind: "waiting", untilMs: 1000, reason: "busy" });
    nowMs = 86_400_000;
    pacer.succeeded(await pacer.enter(signal));
    expect(pacer.state()).toEqual({ kind: "open" });
  });
});

describe("a refused key", () => {
  const refused = (): Later => failure({ blame: "key", reason: "unknown key" });
  let reports: string[];
  beforeEach(() => {
    reports = [];
    pacer = openTestPacer({ patienceMs: () => 0, onTrouble: ({ code }) => reports.push(code) });
  });

  it("tries a refused key again at once with one request, whose success resets the state", async () => {
    const [first, second] = [await pacer.enter(signal), await pacer.enter(signal)];
    pacer.failed(first, refused());
    pacer.failed(second, refused());
    const probe = await pacer.enter(signal);
    pacer.succeeded(probe);
    await pacer.enter(signal);
    expect(pacer.state()).toEqual({ kind: "open" });
    expect(reports).toEqual([]);
  });

  it("reports a key that is refused twice once, and ends a pass", async () => {
    pacer.failed(await pacer.enter(signal), refused());
    pacer.failed(await pacer.enter(signal), refused());
    expect(pacer.state()).toMatchObject({ kind: "key_refused", reason: "unknown key" });
    expect(reports).toEqual(["key_refused"]);
    await expect(pacer.enter(signal)).rejects.toMatchObject({ code: "key_refused" });
  });

  it("tries a refused key at growing intervals up to a minute", async () => {
    const patient = openTestPacer({ random: () => 1, onTrouble: ({ code }) => reports.push(code) });
    const waitsMs: number[] = [];
    for (let times = 0; times < 12; times += 1) {
      patient.failed(await patient.enter(signal), refused());
      const state = patient.state();
      const untilMs = "untilMs" in state ? state.untilMs : nowMs;
      waitsMs.push(untilMs - nowMs);
      nowMs = untilMs;
    }
    expect(waitsMs.slice(0, 4)).toEqual([0, 500, 1000, 2000]);
    expect(waitsMs.at(-1)).toBe(60_000);
    expect(reports).toEqual(["key_refused"]);
  });
});

describe("trouble", () => {
  let reported: { readonly code: string; readonly hint: string | undefined; readonly message: string }[];
  let widths: number[];
  let gate: Pacer;
  beforeEach(() => {
    reported = [];
    widths = [];
    gate = openTestPacer({
      onWidth: (width) => widths.push(width),
      onTrouble: ({ code, hint, message }) => reported.push({ code, hint, message }),
    });
  });
  const fail = async (...failures: Partial<Later>[]): Promise<void> => {
    for (const more of failures) {
      gate.failed(await gate.enter(signal), failure(more));
      const state = gate.state();
      if ("untilMs" in state) nowMs = state.untilMs;
    }
  };

  it("reports trouble at the third failure in a row, once until the service answers again", async () => {
    await fail({}, {});
    expect(reported).toEqual([]);
    await fail({}, {}, {});
    expect(reported).toEqual([
      {
        code: "service_unreachable",
        message: "the service does not answer: busy",
        hint: expect.stringContaining("address") as string,
      },
    ]);
    gate.succeeded(await gate.enter(signal));
    await fail({}, {}, {});
    expect(reported).toHaveLength(2);
  });

  it("reports trouble that a person can end at once, and again only with another hint", async () => {
    await fail({ hint: "Restore it." }, { hint: "Restore it." }, { hint: "Make room." });
    expect(reported.map(({ hint }) => hint)).toEqual(["Restore it.", "Make room."]);
    expect(reported[0]?.message).toBe("the service cannot work: busy");
  });

  it("reports no further trouble at the third failure of a key that is finally refused", async () => {
    await fail({ blame: "key" }, { blame: "key" }, { blame: "key" }, { blame: "key" });
    expect(reported.map(({ code }) => code)).toEqual(["key_refused"]);
  });

  it("lowers the width with every failure and raises it with every success", async () => {
    expect(gate.width()).toBe(8);
    await fail({});
    expect(gate.width()).toBe(4);
    await fail({}, {}, {});
    expect(gate.width()).toBe(1);
    expect(widths).toEqual([4, 2, 1]);
    for (let times = 0; times < 99; times += 1) gate.succeeded(await gate.enter(signal));
    expect(gate.width()).toBe(8);
    expect(widths).toEqual([4, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("ends all waiting requests when the gate is closed for good", async () => {
    await fail({});
    nowMs = 0;
    const waiting = gate.enter(signal);
    gate.close(new Error("the daemon ends"));
    await expect(waiting).rejects.toThrow("the daemon ends");
    await expect(gate.enter(signal)).rejects.toThrow("the daemon ends");
  });

  it.each([
    [{ reason: "refused" }, "the service does not answer: refused"],
    [{ reason: "No room.", hint: "Make room." }, "the service cannot work: No room. Make room"],
  ])("describes an outage: %o", (outage, words) => {
    expect(outageWords(outage)).toBe(words);
  });
});

describe("a service that asks for a long wait", () => {
  const troubles: KbsyncError[] = [];
  beforeEach(() => {
    troubles.length = 0;
    pacer = openTestPacer({ onTrouble: (error) => troubles.push(error) });
  });

  it.each([
    ["first", 1],
    ["second", 2],
  ])("reports a long wait at once where the %s of two failures brings it", async (_which, at) => {
    const tickets = [await pacer.enter(signal), await pacer.enter(signal)];
    for (const [index, ticket] of tickets.entries())
      pacer.failed(ticket, failure(index + 1 === at ? { retryAfterMs: 86_400_000 } : {}));
    expect(pacer.state()).toMatchObject({ kind: "waiting", isAsked: true, untilMs: 3_600_000 });
    expect(troubles.map(({ message, hint }) => [message, hint])).toEqual([
      ["the service asks to wait for 1440 min, the next try is in 60 min: busy", "`kbsync retry` tries now."],
    ]);
  });

  it("does not report a short wait", async () => {
    pacer.failed(await pacer.enter(signal), failure({ retryAfterMs: 59_000 }));
    expect(pacer.state()).not.toHaveProperty("isAsked");
    expect(troubles).toEqual([]);
  });

  it("lets one request leave when a person retries, and waits again if that fails", async () => {
    pacer.failed(await pacer.enter(signal), failure({ retryAfterMs: 3_600_000 }));
    const waiting = pacer.enter(signal);
    pacer.retry();
    pacer.failed(await waiting, failure({ retryAfterMs: 3_600_000 }));
    expect(troubles).toHaveLength(1);
    const again = pacer.enter(signal);
    pacer.retry();
    pacer.succeeded(await again);
    expect(pacer.state()).toEqual({ kind: "open" });
    pacer.retry();
    expect(pacer.state()).toEqual({ kind: "open" });
  });
});

describe("the time of day is set while the gate is closed", () => {
  const HOUR_MS = 3_600_000;
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it.each([
    { set: "forward", byMs: HOUR_MS },
    { set: "back", byMs: -HOUR_MS },
  ])("waits as long as the service asked when the clock is set $set", async ({ byMs }) => {
    let elapsedMs = 0;
    const gate = openPacer({
      widthMax: 8,
      patienceMs: () => Infinity,
      elapsed: () => elapsedMs,
      random: () => 0,
      onWidth: () => undefined,
      onTrouble: () => undefined,
    });
    gate.failed(await gate.enter(signal), failure({ retryAfterMs: 600_000 }));
    vi.setSystemTime(Date.now() + byMs);
    const abort = new AbortController();
    let isIn = false;
    const early = gate.enter(abort.signal).then(
      () => (isIn = true),
      () => undefined,
    );
    await new Promise(setImmediate);
    expect(isIn).toBe(false);
    expect(gate.state()).toMatchObject({ kind: "waiting", untilMs: Date.now() + 600_000 });
    abort.abort();
    await early;
    elapsedMs = 600_000;
    gate.succeeded(await gate.enter(signal));
    expect(gate.state()).toEqual({ kind: "open" });
  });
});

describe("a limit of requests per minute", () => {
  it("a request beyond it waits, also for the probe after a failure, until the gate is closed for good", async () => {
    const gate = openTestPacer({ requestsPerMinute: 3 });
    gate.failed(await gate.enter(signal), failure());
    nowMs = 500;
    let error: unknown;
    const waiting = gate.enter(signal).catch((reason: unknown) => (error = reason));
    await new Promise(setImmediate);
    expect([error, gate.state().kind]).toEqual([undefined, "waiting"]);
    gate.close(new Error("the end"));
    await waiting;
    expect(error).toEqual(new Error("the end"));
  });

  it("a request beyond it leaves when one of a minute ago no longer counts", async () => {
    const gate = openTestPacer({ requestsPerMinute: 3 });
    await gate.enter(signal);
    expect(gate.state()).toEqual({ kind: "limited", requestsPerMinute: 3 });
    nowMs = 59_990;
    let isIn = false;
    const waiting = gate.enter(signal).then(() => (isIn = true));
    await new Promise(setImmediate);
    expect(isIn).toBe(false);
    nowMs = 60_000;
    await waiting;
    expect(isIn).toBe(true);
  });
});
