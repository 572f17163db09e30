import { describe, expect, it } from "vitest";
import { limitAt, LimitsConfig } from "../../../src/config/schema/limits.ts";
import { parseConfig } from "../../../src/config/config-file.ts";

const [SUN, MON, FRI, SAT] = [0, 1, 5, 6];
const at = (day: number, time: string): { day: number; minute: number } => ({
  day,
  minute: Number(time.slice(0, 2)) * 60 + Number(time.slice(3)),
});

describe("limits of the configuration", () => {
  it.each([
    ["256 kB/s", 256_000],
    ["2MB/s", 2_000_000],
    ["1.5 MiB/s", 1_572_864],
    ["10 Mbit/s", 1_250_000],
    ["unlimited", Infinity],
  ])("reads the rate %j as %d bytes per second", (uploadRate, bytes) => {
    expect(LimitsConfig.parse({ uploadRate }).uploadRate).toBe(bytes);
  });

  const office = { from: "08:00", to: "18:00", days: "mon-fri", uploadRate: "256 kB/s" };
  it.each<[name: string, limits: object, message: string]>([
    [
      "a rate that other programs read as unlimited",
      { uploadRate: 0 },
      "limits.uploadRate: expected a rate such as",
    ],
    ["a word that rclone reads as unlimited", { uploadRate: "off" }, 'or "paused" or "unlimited", got "off"'],
    ["a rate without a time", { uploadRate: "2 MB" }, "limits.uploadRate: expected a rate such as"],
    ["a rate of nothing", { uploadRate: "0 kB/s" }, 'expected at least 1 kB/s, or "paused", got "0 kB/s"'],
    ["a rate with a unit of two meanings", { uploadRate: "2 Mb/s" }, "expected a rate such as"],
    ["a pause without an end", { uploadRate: "paused" }, "no document would ever be sent"],
    [
      "one request a minute",
      { requestsPerMinute: 2 },
      "limits.requestsPerMinute: expected number to be >=3, got 2",
    ],
    [
      "a time without a zero",
      { timetable: [{ ...office, from: "8:00" }] },
      'expected a time such as "08:00", got "8:00"',
    ],
    [
      "a time after midnight as 25:00",
      { timetable: [{ ...office, to: "25:00" }] },
      "timetable[0].to: expected a time",
    ],
    [
      "unknown days",
      { timetable: [{ ...office, days: "weekdays" }] },
      'timetable[0].days: expected days such as "mon-fri"',
    ],
    ["a range of three days", { timetable: [{ ...office, days: "mon-wed-fri" }] }, 'got "mon-wed-fri"'],
    [
      "a window of no length",
      { timetable: [{ ...office, to: "08:00" }] },
      "timetable[0].to: expected another time than from",
    ],
    [
      "a window that limits nothing",
      { timetable: [{ from: "08:00", to: "18:00" }] },
      "expected uploadRate or requestsPerMinute",
    ],
    ["an unknown key", { timetable: [{ ...office, rate: 1 }] }, "timetable[0].rate: unknown key"],
    [
      "two windows at once",
      { timetable: [office, { from: "17:00", to: "23:00", uploadRate: "paused" }] },
      "timetable[1]: expected windows that do not overlap: timetable[0] also covers mon 17:00",
    ],
    [
      "a night that reaches into the next day's window",
      { timetable: [{ from: "22:00", to: "08:01", days: "sun", uploadRate: "paused" }, office] },
      "timetable[1]: expected windows that do not overlap: timetable[0] also covers mon 08:00",
    ],
  ])("a configuration refuses the limit %s", (_name, limits, message) => {
    expect(() => parseConfig(JSON.stringify({ sync: { limits } }), "c")).toThrow(message);
  });

  const limits = LimitsConfig.parse({
    uploadRate: "2 MB/s",
    requestsPerMinute: 60,
    timetable: [
      office,
      { from: "22:00", to: "06:00", days: "fri,sat", uploadRate: "unlimited", requestsPerMinute: 600 },
      { from: "12:00", to: "24:00", days: "sun", uploadRate: "paused" },
    ],
  });
  it.each([
    ["before a window", at(MON, "07:59"), 2_000_000, 60],
    ["at the begin of a window", at(MON, "08:00"), 256_000, 60],
    ["at the end of a window", at(MON, "18:00"), 2_000_000, 60],
    ["on another day", at(SAT, "08:00"), 2_000_000, 60],
    ["late in a night", at(FRI, "23:00"), Infinity, 600],
    ["in a night that began on the day before", at(SUN, "05:59"), Infinity, 600],
    ["in a night that began on no such day", at(MON, "05:59"), 2_000_000, 60],
    ["in a pause", at(SUN, "23:59"), 0, 60],
  ])("limits of the configuration hold %s", (_name, time, uploadRate, requestsPerMinute) => {
    expect(limitAt(limits, time)).toEqual({ uploadRate, requestsPerMinute });
  });

  it("limits may have windows that meet", () => {
    const nights = { from: "18:00", to: "08:00", uploadRate: "unlimited" };
    expect(
      LimitsConfig.safeParse({ timetable: [nights, { ...nights, from: "08:00", to: "18:00" }] }).success,
    ).toBe(true);
  });
});
