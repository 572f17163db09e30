import { describe, expect, it } from "vitest";
import { LimitsConfig, type WallTime } from "../../../src/config/schema/limits.ts";
import {
  type Departure,
  type Limits,
  openLimits,
  type RequestKind,
} from "../../../src/sync/remote/limits.ts";
import type { ExchangeRequest } from "../../../src/sync/remote/exchange.ts";

const { signal } = new AbortController();
const MINUTE_MS = 60_000;

const BERLIN = new Intl.DateTimeFormat("en-GB", {
  timeZone: "Europe/Berlin",
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** The time of day in a zone with clock changes, whatever the machine's is. */
function berlin(ms: number): WallTime {
  const parts = BERLIN.formatToParts(ms);
  const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? "";
  const day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(part("weekday"));
  return { day, minute: Number(part("hour")) * 60 + Number(part("minute")) };
}

interface Stage {
  readonly limits: Limits;
  readonly clock: { ms: number };
  readonly moves: () => number;
}

/** Limits whose time passes in their pauses alone, from a Monday at noon in winter. */
function stage(config: object, startMs = Date.parse("2026-01-05T12:00:00+01:00")): Stage {
  const clock = { ms: startMs };
  let moves = 0;
  const limits = openLimits({
    limits: LimitsConfig.parse(config),
    onMoved: () => void (moves += 1),
    elapsed: () => clock.ms,
    timeOfDay: () => clock.ms,
    wallTime: berlin,
    pause: (ms) => {
      clock.ms += ms;
      return Promise.resolve();
    },
  });
  return { limits, clock, moves: () => moves };
}

function admitted(limits: Limits, kind: RequestKind = "content"): Departure {
  const departure = limits.admit(kind);
  if (typeof departure === "number") throw new Error(`has to wait ${departure} ms`);
  return departure;
}

const post = (body: unknown): ExchangeRequest => ({
  method: "POST",
  path: "/",
  headers: {},
  body: body as never,
});

/** Sends the whole body. Returns its slices. */
async function send(departure: Departure, body: unknown): Promise<Uint8Array[]> {
  const slices: Uint8Array[] = [];
  const { body: paced } = departure.pace(post(body), signal);
  for await (const slice of paced as unknown as AsyncIterable<Uint8Array>) slices.push(slice);
  return slices;
}

describe("a rate", () => {
  it("spreads a body over the time that it takes, in slices of a quarter second", async () => {
    const { limits, clock, moves } = stage({ uploadRate: "100 kB/s" });
    const startMs = clock.ms;
    const slices = await send(admitted(limits), "x".repeat(1_000_000));
    expect(clock.ms - startMs).toBeGreaterThan(9500);
    expect(clock.ms - startMs).toBeLessThanOrEqual(10_000);
    expect(Math.max(...slices.map(({ length }) => length))).toBe(25_000);
    expect(moves()).toBe(slices.length);
  });

  it("holds over many small bodies", async () => {
    const { limits, clock } = stage({ uploadRate: "100 kB/s" });
    const startMs = clock.ms;
    for (let sent = 0; sent < 100;) {
      const departure = limits.admit("content");
      if (typeof departure === "number") clock.ms += departure;
      else {
        await send(departure, "x".repeat(5000));
        sent += 1;
      }
    }
    expect(500_000 / (clock.ms - startMs)).toBeLessThan(110);
  });

  it("lets one document leave at a time, and the next one before the answer to the first", async () => {
    const { limits, clock } = stage({ uploadRate: "100 kB/s" });
    const first = admitted(limits);
    expect(limits.admit("content")).toBeTypeOf("number");
    await send(first, "x".repeat(1000));
    clock.ms += 1000;
    admitted(limits);
    first.end();
    expect(limits.admit("content")).toBeTypeOf("number");
  });

  it("a rate does not hold lists and deletes", () => {
    const { limits } = stage({ uploadRate: "1 kB/s" });
    admitted(limits);
    for (let index = 0; index < 1000; index += 1) expect(limits.admit("control")).toBeTypeOf("object");
  });

  it("sends the bytes of a file unchanged, with their length", async () => {
    const { limits } = stage({ uploadRate: "1 MB/s" });
    const pieces = [Buffer.alloc(200_000, "a"), Buffer.alloc(7, "b")];
    const file = async function* (): AsyncGenerator<Buffer> {
      for (const piece of pieces) yield await Promise.resolve(piece);
    };
    expect(Buffer.concat(await send(admitted(limits), file()))).toEqual(Buffer.concat(pieces));
    const { limits: others } = stage({ uploadRate: "1 MB/s" });
    expect(admitted(others).pace(post("ä"), signal).headers).toEqual({ "content-length": "2" });
  });

  it("frees the line for the next document if a request fails before its body is read", () => {
    const { limits } = stage({ uploadRate: "100 kB/s" });
    const failed = admitted(limits);
    failed.pace(post("text"), signal);
    failed.end();
    expect(limits.admit("content")).toBeTypeOf("object");
  });
});

describe("requests per minute", () => {
  it("requests per minute hold in every 60 seconds, and reserve a tenth for each kind", () => {
    const { limits, clock } = stage({ requestsPerMinute: 20 });
    const sent: number[] = [];
    const times = { recent: 0, content: 0, control: 0 };
    for (const endMs = clock.ms + 10 * MINUTE_MS; clock.ms < endMs; clock.ms += 100) {
      for (const kind of ["content", "control", "recent"] as const) {
        if (typeof limits.admit(kind) === "number") continue;
        sent.push(clock.ms);
        times[kind] += 1;
      }
    }
    const most = Math.max(
      ...sent.map((at) => sent.filter((other) => other >= at && other < at + MINUTE_MS).length),
    );
    expect(most).toBe(20);
    expect(sent).toHaveLength(200);
    expect(Math.min(times.recent, times.content, times.control)).toBeGreaterThanOrEqual(20);
  });

  it.each([
    ["a recent change while the backlog has", "content", "recent"],
    ["a delete while the backlog has", "content", "control"],
    ["a delete while recent changes have", "recent", "control"],
    ["the backlog while recent changes have", "recent", "content"],
    ["the backlog while deletes have", "control", "content"],
    ["a recent change while deletes have", "control", "recent"],
  ] as const)("requests per minute let %s used up their share", (_name, first, second) => {
    const { limits, clock } = stage({ requestsPerMinute: 10 });
    while (typeof limits.admit(first) !== "number");
    admitted(limits, second);
    expect(limits.admit(second)).toBe(MINUTE_MS);
    clock.ms += MINUTE_MS;
    admitted(limits, second);
  });
});

describe("a timetable", () => {
  const pause = { timetable: [{ from: "08:00", to: "18:00", days: "mon-fri", uploadRate: "paused" }] };

  it("sends no documents in a pause, but lists and deletes, and says until when", () => {
    const { limits, clock } = stage(pause);
    expect(limits.admit("content")).toBeTypeOf("number");
    admitted(limits, "control");
    const untilMs = Date.parse("2026-01-05T18:00:00+01:00");
    expect(limits.state()).toEqual({ kind: "limited", uploadRate: 0, untilMs });
    clock.ms = untilMs - 1;
    expect(limits.admit("content")).toBe(1);
    clock.ms = untilMs;
    admitted(limits);
    expect(limits.state()).toBeUndefined();
  });

  it("sends a document that is leaving when a pause begins to its end, at its rate", async () => {
    const config = { uploadRate: "1 kB/s", timetable: pause.timetable };
    const { limits, clock } = stage(config, Date.parse("2026-01-05T07:59:59+01:00"));
    const startMs = clock.ms;
    await send(admitted(limits), "x".repeat(10_240));
    expect(clock.ms - startMs).toBeGreaterThan(9000);
    expect(limits.admit("content")).toBeTypeOf("number");
  });

  it("names no end of limits that hold all week", () => {
    const { limits } = stage({ uploadRate: "1 MB/s", requestsPerMinute: 60 });
    expect(limits.state()).toEqual({
      kind: "limited",
      uploadRate: 1_000_000,
      requestsPerMinute: 60,
      untilMs: undefined,
    });
  });

  it.each([
    ["is skipped in spring", "02:30", "2026-03-29T01:59:00+01:00", "2026-03-29T03:00:00+02:00"],
    ["is there once in summer", "02:30", "2026-06-07T01:59:00+02:00", "2026-06-07T02:30:00+02:00"],
    ["comes twice in autumn", "02:30", "2026-10-25T01:59:00+02:00", "2026-10-25T02:30:00+02:00"],
  ])("a timetable begins a window by the clock on the wall when that time %s", (_name, from, now, begins) => {
    const { limits, clock } = stage(
      { uploadRate: "1 MB/s", timetable: [{ from, to: "05:00", uploadRate: "paused" }] },
      Date.parse(now),
    );
    expect(limits.state()?.untilMs).toBe(Date.parse(begins));
    clock.ms = Date.parse(begins) - 1;
    expect(limits.state()?.uploadRate).toBe(1_000_000);
    clock.ms = Date.parse(begins);
    expect(limits.state()?.uploadRate).toBe(0);
  });
});

describe("waiting", () => {
  it("waiting ends when a document has left, when the signal aborts, and when the daemon stops", async () => {
    const { limits } = stage({ uploadRate: "100 kB/s" });
    const departure = admitted(limits);
    const aborted = new AbortController();
    const waits = [limits.wait(1e6, signal), limits.wait(1e6, aborted.signal)];
    aborted.abort();
    await waits[1];
    departure.end();
    await waits[0];
    const last = limits.wait(1e6, signal);
    limits.wake();
    await last;
    await expect(limits.wait(1e6, aborted.signal)).resolves.toBeUndefined();
  });
});
