import { beforeEach, describe, expect, it } from "vitest";
import { openSessions, type Sessions } from "../../../src/kb/console/sessions.ts";
import type { SessionRecord } from "../../../src/kb/store/accounts.ts";

const HOUR_MS = 3_600_000;
const START = Date.parse("2026-01-01T00:00:00.000Z");

let nowMs = START;
let stored: Map<string, SessionRecord>;
let reads: number;
let writes: number;
let sessions: Sessions;
beforeEach(() => {
  [nowMs, stored, reads, writes] = [START, new Map(), 0, 0];
  sessions = openSessions(
    {
      putSession: async (record) => {
        writes += 1;
        stored.set(record.sha256, record);
      },
      session: async (sha256) => {
        reads += 1;
        return stored.get(sha256);
      },
      takeSession: async (sha256) => {
        const found = stored.get(sha256);
        stored.delete(sha256);
        return found;
      },
    },
    () => nowMs,
  );
});

describe("a session", () => {
  it("a session has a token of 256 random bits, of which only the hash is stored", async () => {
    const [one, other] = [await sessions.open("key"), await sessions.open("key")];
    expect(one.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(one.token).not.toBe(other.token);
    expect(one.expiresMs).toBe(START + 12 * HOUR_MS);
    expect(JSON.stringify([...stored])).not.toContain(one.token);
    expect([...stored.keys()].every((sha256) => /^[\da-f]{64}$/.test(sha256))).toBe(true);
  });

  it("a session of a link has 144 random bits, so that the link fits a narrow terminal", async () => {
    expect((await sessions.issueLink("key", HOUR_MS)).token).toMatch(/^[A-Za-z0-9_-]{24}$/);
  });

  it.each([
    ["is valid until the last millisecond", 12 * HOUR_MS - 1, true],
    ["ends after twelve hours", 12 * HOUR_MS, false],
  ])("a session %s", async (_name, ms, isValid) => {
    const { token } = await sessions.open("key");
    nowMs += ms;
    const outcome = await sessions.keyOf(token).catch((error: { refusal: string }) => error.refusal);
    expect(outcome).toBe(isValid ? "key" : "session_ended");
  });

  it("a session is extended by a request once it has lost five minutes, and written no more often", async () => {
    const { token } = await sessions.open("key");
    nowMs += 299_999;
    await sessions.keyOf(token);
    expect(writes).toBe(1);
    nowMs += 1;
    await sessions.keyOf(token);
    await sessions.keyOf(token);
    expect(writes).toBe(2);
    nowMs += 12 * HOUR_MS - 1;
    expect(await sessions.keyOf(token)).toBe("key");
  });

  it("a session is not read for a token that is longer than any", async () => {
    await expect(sessions.keyOf("x".repeat(101))).rejects.toMatchObject({ refusal: "session_ended" });
    expect(reads).toBe(0);
    await expect(sessions.keyOf("x".repeat(100))).rejects.toMatchObject({ refusal: "session_ended" });
    expect(reads).toBe(1);
  });
});
