import { Headers } from "undici";
import { describe, expect, it } from "vitest";
import { EndpointRefusal, EndpointUnreachable } from "../../../src/kb/models/endpoint.ts";
import { requestedWaitMs } from "../../../src/kb/models/model-failure.ts";
import { withRetries } from "../../../src/kb/models/retry.ts";

const refused = (status: number, headers: Record<string, string> = {}): Error =>
  new EndpointRefusal(status, "no", new Headers(headers));
const never = new AbortController().signal;
const limits = { attemptMs: 10_000, totalMs: 100_000 };

/** Calls until an attempt has nothing to throw; returns how many there were and what came of the call. */
async function callsOf(
  failures: readonly (Error | "hang")[],
  { attempts = 5, signal = never, bounds = limits } = {},
) {
  let calls = 0;
  const outcome = await withRetries(bounds, attempts, signal, async (attemptSignal) => {
    const failure = failures[calls++];
    if (failure === "hang") {
      await new Promise((_, reject) => {
        attemptSignal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
      });
    } else if (failure !== undefined) throw failure;
    return "answer";
  }).catch((error: unknown) => error);
  return { calls, outcome };
}
const soon = (status: number): Error => refused(status, { "retry-after": "0" });

describe("a call with retries", () => {
  it("a call with retries is made once where it succeeds", async () => {
    expect(await callsOf([])).toEqual({ calls: 1, outcome: "answer" });
  });

  it("a call with retries is repeated while the endpoint is busy, fails or is down", async () => {
    const found = await callsOf([soon(429), soon(500), soon(503)]);
    expect(found).toEqual({ calls: 4, outcome: "answer" });
  });

  it("a call with retries is repeated after half a second where the endpoint asks for no wait", async () => {
    const startMs = performance.now();
    const found = await callsOf([new EndpointUnreachable("no route")]);
    expect(found).toEqual({ calls: 2, outcome: "answer" });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(495);
  });

  it("throws the last failure when all attempts are used up", async () => {
    const last = soon(503);
    expect(await callsOf([soon(429), last], { attempts: 2 })).toEqual({ calls: 2, outcome: last });
    expect(await callsOf([last], { attempts: 1 })).toEqual({ calls: 1, outcome: last });
  });

  it.each([
    ["a refusal of the request", soon(400)],
    ["a wrong key", soon(401)],
    ["a budget that is used up", refused(429, { "x-should-retry": "false", "retry-after": "0" })],
    ["an error of our own", new TypeError("x is not a function")],
    ["a wait of more than a minute", refused(429, { "retry-after": "61" })],
  ])("a call with retries is not repeated after %s", async (_name, failure) => {
    expect(await callsOf([failure])).toEqual({ calls: 1, outcome: failure });
  });

  it("a call with retries does not wait where the wait would end after its time", async () => {
    const bounds = { attemptMs: 1000, totalMs: 450 };
    const failure = refused(503);
    expect(await callsOf([failure], { bounds })).toEqual({ calls: 1, outcome: failure });
  });

  it.each([
    ["its time", { attemptMs: 20, totalMs: 100 }],
    ["the time of the call as a whole", { attemptMs: 10_000, totalMs: 20 }],
  ])("a call with retries ends an attempt that hangs beyond %s", async (_name, bounds) => {
    const { calls, outcome } = await callsOf(["hang"], { bounds });
    expect(calls).toBe(1);
    expect(outcome).toMatchObject({ name: "TimeoutError", message: "the endpoint did not answer" });
  });

  it("a call with retries repeats an attempt that hung while there is time", async () => {
    const found = await callsOf(["hang"], { bounds: { attemptMs: 20, totalMs: 10_000 } });
    expect(found).toEqual({ calls: 2, outcome: "answer" });
  });

  it("throws the reason of its signal, whatever the attempt threw", async () => {
    const reason = new Error("the user left");
    const control = new AbortController();
    const hanging = callsOf(["hang", "hang"], { signal: control.signal });
    control.abort(reason);
    expect(await hanging).toEqual({ calls: 1, outcome: reason });
  });
});

it.each(["Infinity", "99999999999999"])("waits a day at most where an endpoint asks for %s ms", (ms) => {
  expect(requestedWaitMs(refused(429, { "retry-after-ms": ms }))).toBe(24 * 3600 * 1000);
});
