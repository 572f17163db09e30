import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { whileServiceAnswers } from "../../../src/sync/daemon/audits.ts";
import type { Parts } from "../../../src/sync/daemon/parts.ts";
import type { GateState } from "../../../src/wire/daemon-status.ts";

const NEVER = new AbortController().signal;
const AWAY: GateState = { kind: "waiting", untilMs: 0, reason: "connect ECONNREFUSED 127.0.0.1:9" };
let service: GateState;
const parts = {
  pacer: { state: () => service },
  limit: { state: () => undefined },
} as unknown as Parts; // what tells whether the service answers
/** As an audit that waits for its turn, it notices no signal. */
const waitForTurn = async (): Promise<never> => new Promise(() => undefined);

beforeEach(() => {
  vi.useFakeTimers();
  service = { kind: "open" };
});
afterEach(() => {
  vi.useRealTimers();
});

it("a verify ends after the service has been away for some seconds, and says why in the words of the status", async () => {
  let end: unknown;
  whileServiceAnswers(parts, NEVER, waitForTurn).catch((error: unknown) => (end = error));
  for (const state of [AWAY, { kind: "open" } as const, AWAY]) {
    service = state;
    await vi.advanceTimersByTimeAsync(9000);
  }
  expect(end).toBeUndefined();
  await vi.advanceTimersByTimeAsync(2000);
  expect(end).toMatchObject({
    code: "service_unreachable",
    retryable: true,
    message: "the service does not answer: connect ECONNREFUSED 127.0.0.1:9",
  });
});

it("a verify names a refused key", async () => {
  service = { kind: "key_refused", untilMs: 0, reason: "HTTP 401" };
  const ended = whileServiceAnswers(parts, NEVER, waitForTurn).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(await ended).toMatchObject({
    code: "key_refused",
    message: "the service refuses the key: HTTP 401",
  });
});

it("a verify ends with its client, and returns its report", async () => {
  const leaving = new AbortController();
  const ended = whileServiceAnswers(parts, leaving.signal, waitForTurn);
  leaving.abort(new Error("gone"));
  await expect(ended).rejects.toThrow("gone");
  expect(await whileServiceAnswers(parts, NEVER, async () => Promise.resolve("report"))).toBe("report");
  expect(vi.getTimerCount()).toBe(0);
});
