import { describe, expect, it } from "vitest";
import { openChecks } from "../../../../src/sync/daemon/agenda/checks.ts";
import { EMPTY_MS } from "../../../../src/sync/daemon/agenda/settle.ts";
import { CEILING_MS } from "../../../../src/sync/plan/timing.ts";

describe("checks", () => {
  it("returns a path when it has rested", () => {
    const checks = openChecks(100, () => undefined);
    checks.settle("a", 1000);
    checks.settle("a", 1050);
    expect(checks.nextDueMs()).toBe(1150);
    expect(checks.take(1149)).toBeUndefined();
    expect(checks.take(1150)?.paths).toEqual(["a"]);
    expect(checks.isQuiet()).toBe(true);
  });

  it("uses the earlier of two times to check a path", () => {
    const checks = openChecks(100, () => undefined);
    checks.checkAt("a", 3_600_000, 0);
    expect(checks.isQuiet()).toBe(true);
    checks.checkAt("a", 50, 0);
    expect(checks.nextDueMs()).toBe(50);
    expect(checks.isQuiet()).toBe(false);
    checks.checkAt("a", 9000, 0);
    expect(checks.nextDueMs()).toBe(50);
    expect(checks.take(50)?.paths).toEqual(["a"]);
    expect(checks.isQuiet()).toBe(true);
  });

  it("lets a file rest that was edited while it waited for a retry", () => {
    const checks = openChecks(100, () => undefined);
    checks.checkAt("a", 10 * CEILING_MS, 0);
    checks.settle("a", 2 * CEILING_MS);
    expect(checks.nextDueMs()).toBe(2 * CEILING_MS + 100);
    const due = checks.take(2 * CEILING_MS + 100);
    expect(due?.paths).toEqual(["a"]);
  });

  it("the set of checks is quiet while only retries and excluded paths are marked", () => {
    const checks = openChecks(100, () => undefined);
    expect(checks.isQuiet()).toBe(true);
    checks.checkAt("retried", 60_000, 1000);
    expect([checks.isQuiet(), checks.nextDueMs()]).toEqual([true, 60_000]);
    checks.settle("a", 2000);
    checks.settle("b", 1500);
    checks.settle("a", 3000);
    expect([checks.isQuiet(), checks.nextDueMs()]).toEqual([false, 1600]);
    expect(checks.isQuiet((path) => path === "a")).toBe(false);
    expect(checks.isQuiet((path) => path === "a" || path === "b")).toBe(true);
    expect([...checks.due()].toSorted()).toEqual(["a", "b", "retried"]);
    expect([checks.isDue("retried"), checks.isDue("c")]).toEqual([true, false]);
    expect(["a", "retried", "c"].map((path) => checks.isSettling(path))).toEqual([true, false, false]);
    expect(checks.take(3100)?.paths).toEqual(["a", "b"]);
    expect([checks.isQuiet(), checks.isDue("a")]).toEqual([true, false]);
  });

  it("turns a retry into a mark when something happens, or when it is due soon", () => {
    for (const hurry of [
      (checks: ReturnType<typeof openChecks>) => checks.settle("a", 2000),
      (checks: ReturnType<typeof openChecks>) => checks.checkAt("a", 2000 + EMPTY_MS, 2000),
    ]) {
      const checks = openChecks(100, () => undefined);
      checks.checkAt("a", 60_000, 1000);
      hurry(checks);
      expect(checks.isQuiet()).toBe(false);
      checks.take(60_000);
      expect(checks.isQuiet()).toBe(true);
    }
  });

  it("the set of checks is not quiet while the whole source is due, except for a retry of it", () => {
    const checks = openChecks(100, () => undefined);
    checks.checkAll(60_000, 1000);
    expect([checks.isQuiet(), checks.take(59_999)]).toEqual([true, undefined]);
    checks.checkAll(70_000, 1000, true);
    expect([checks.isQuiet(), checks.nextDueMs()]).toEqual([false, 60_000]);
    checks.checkAll(80_000, 1000);
    expect(checks.isQuiet()).toBe(false);
    expect(checks.take(60_000)).toMatchObject({ all: true, paths: [] });
    expect([checks.isQuiet(), checks.nextDueMs()]).toEqual([true, undefined]);
    checks.checkAll(60_000, 60_000);
    expect(checks.isQuiet()).toBe(false);
  });

  it("looks every two seconds at a path to which something happens all the time", () => {
    const checks = openChecks(100, () => undefined);
    for (let atMs = 0; atMs < 1950; atMs += 50) checks.settle("a", atMs);
    expect([checks.take(1999), checks.nextDueMs()]).toEqual([undefined, 2000]);
    expect(checks.take(2000)?.paths).toEqual(["a"]);
  });
});
