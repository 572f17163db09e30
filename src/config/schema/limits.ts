import { z } from "zod";

/** Bounds of the requests in flight. */
export interface Limit {
  /** Bytes of documents per second; 0: none are sent, Infinity: no limit. */
  readonly uploadRate: number;
  /** Infinity: no limit. */
  readonly requestsPerMinute: number;
}

/** A moment by the clock on the wall. */
export interface WallTime {
  /** 0 is Sunday. */
  readonly day: number;
  /** Since midnight. */
  readonly minute: number;
}

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DAY_MINUTES = 24 * 60;
const WINDOWS_MAX = 100;
/** Slower, a document of 32 MB would take more than nine hours. */
const RATE_MIN = 1000;
const RATE_EXPECTED =
  'expected a rate such as "256 kB/s", "2 MB/s" or "10 Mbit/s", or "paused" or "unlimited"';
const BYTES_OF_UNIT: Readonly<Record<string, number>> = {
  "B/s": 1,
  "kB/s": 1e3,
  "MB/s": 1e6,
  "GB/s": 1e9,
  "KiB/s": 2 ** 10,
  "MiB/s": 2 ** 20,
  "GiB/s": 2 ** 30,
  "kbit/s": 125,
  "Mbit/s": 125e3,
  "Gbit/s": 125e6,
};

const uploadRate = z
  .string({ error: RATE_EXPECTED })
  .regex(/^(paused|unlimited|\d+(\.\d+)? ?([kMG]?B|[KMG]iB|[kMG]bit)\/s)$/, { error: RATE_EXPECTED })
  .transform(rateOf)
  .refine((rate) => rate === 0 || rate >= RATE_MIN, {
    error: 'expected at least 1 kB/s, or "paused"',
  });
// Fewer would leave nothing for recent changes or deletes while files wait.
const requestsPerMinute = z.int().min(3).max(1_000_000);

const clock = (pattern: RegExp): z.ZodType<number, string> => {
  const error = 'expected a time such as "08:00"';
  return z
    .string({ error })
    .regex(pattern, { error })
    .transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));
};

const days = z
  .string()
  .transform((text, context) => {
    const numbers = daysOf(text);
    if (numbers !== undefined) return numbers;
    context.addIssue({ code: "custom", message: 'expected days such as "mon-fri", "sat,sun" or "mon"' });
    return z.NEVER;
  })
  .describe("Days on which the window begins, such as `mon-fri` or `sat,sun`. Default: every day.");

const timeWindow = z
  .strictObject({
    from: clock(/^([01]\d|2[0-3]):[0-5]\d$/).describe("Begin by the machine's local time, such as `08:00`."),
    to: clock(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/).describe(
      "End, such as `18:00` or `24:00`. Before `from`: on the next day.",
    ),
    days: days.optional(),
    uploadRate: uploadRate
      .optional()
      .describe("Replaces uploadRate in the window; `paused`: sends no documents."),
    requestsPerMinute: requestsPerMinute.optional().describe("Replaces requestsPerMinute in the window."),
  })
  .refine(({ from, to }) => from !== to, {
    error: 'expected another time than from (a whole day is "00:00" to "24:00")',
    path: ["to"],
  })
  .refine((one) => one.uploadRate !== undefined || one.requestsPerMinute !== undefined, {
    error: "expected uploadRate or requestsPerMinute in the window",
  });
type TimeWindow = z.infer<typeof timeWindow>;

/** Limits on what is sent to the service, over all sources. */
export const LimitsConfig = z
  .strictObject({
    uploadRate: uploadRate
      .optional()
      .describe(
        "Most bytes of documents per second, such as `2 MB/s` or `10 Mbit/s`; `paused` sends none. Default: unlimited.",
      ),
    requestsPerMinute: requestsPerMinute
      .optional()
      .describe(
        "Most requests in any 60 seconds. A tenth is reserved for recent changes, one for other documents, one for lists, reads and deletes. Default: unlimited.",
      ),
    timetable: z
      .array(timeWindow)
      .max(WINDOWS_MAX)
      .default([])
      .describe("Windows with other limits, by the machine's local time; they must not overlap."),
  })
  .superRefine((limits, context) => {
    const overlap = firstOverlap(limits.timetable);
    if (overlap !== undefined) {
      const { first, second, at } = overlap;
      const message = `expected windows that do not overlap: timetable[${first}] also covers ${at}`;
      context.addIssue({ code: "custom", path: ["timetable", second], message });
    }
    const open = [limits, ...limits.timetable].some(({ uploadRate: rate }) => rate !== undefined && rate > 0);
    if (limits.uploadRate === 0 && !open) {
      const message = "expected a window in the timetable with another rate: no document would ever be sent";
      context.addIssue({ code: "custom", path: ["uploadRate"], message });
    }
  });
export type LimitsConfig = z.infer<typeof LimitsConfig>;

/** The limits that hold at a time. */
export function limitAt(limits: LimitsConfig, time: WallTime): Limit {
  const { uploadRate: rate, requestsPerMinute: requests } = limits;
  const open = limits.timetable.find((one) => covers(one, time));
  return {
    uploadRate: open?.uploadRate ?? rate ?? Infinity,
    requestsPerMinute: open?.requestsPerMinute ?? requests ?? Infinity,
  };
}

function rateOf(text: string): number {
  if (text === "paused") return 0;
  if (text === "unlimited") return Infinity;
  const [, number = "", unit = ""] = /^([\d.]+) ?(.+)$/.exec(text) ?? [];
  // A rate of nothing is no pause: "0" means "unlimited" to other programs.
  return Math.max(Number.MIN_VALUE, Number(number) * (BYTES_OF_UNIT[unit] ?? NaN));
}

/** `mon-wed,sat` as numbers; undefined if it is not understood. */
function daysOf(text: string): readonly number[] | undefined {
  const numbers = new Set<number>();
  for (const part of text.toLowerCase().split(",")) {
    const [first, last, ...more] = part.split("-").map((name) => DAYS.indexOf(name.trim()));
    const end = last ?? first;
    if (first === undefined || end === undefined || Math.min(first, end) < 0 || more.length > 0)
      return undefined;
    for (let day = first; ; day = (day + 1) % DAYS.length) {
      numbers.add(day);
      if (day === end) break;
    }
  }
  return [...numbers];
}

function covers({ from, to, days: begins }: TimeWindow, { day, minute }: WallTime): boolean {
  const isDay = (one: number): boolean => begins?.includes(one % DAYS.length) ?? true;
  if (from < to) return isDay(day) && minute >= from && minute < to;
  return (isDay(day) && minute >= from) || (isDay(day + DAYS.length - 1) && minute < to);
}

function firstOverlap(
  timetable: readonly TimeWindow[],
): { readonly first: number; readonly second: number; readonly at: string } | undefined {
  // Two windows that overlap do so where one of them begins.
  for (const [second, { from: minute }] of timetable.entries()) {
    for (const [day, name] of DAYS.entries()) {
      const time = { day, minute };
      const covering = timetable.flatMap((one, index) => (covers(one, time) ? [index] : []));
      const first = covering.find((index) => index !== second);
      if (!covering.includes(second) || first === undefined) continue;
      const clockTime = `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
      return { first, second, at: `${name} ${clockTime}` };
    }
  }
  return undefined;
}

/** Minutes of a week: after so many, each timetable repeats. */
export const WEEK_MINUTES = DAYS.length * DAY_MINUTES;
