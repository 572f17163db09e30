import type { RelativePath } from "../../plan/model.ts";
import { LOOK_MS } from "../../plan/timing.ts";

/** When paths, and the whole source, are checked. Reads no clock: times are arguments. */
export type Checks = ReturnType<typeof openChecks>;

/** The paths that a pass takes. */
export interface Due {
  readonly all: boolean;
  readonly paths: readonly RelativePath[];
}

interface Check {
  firstMs: number;
  isRetry: boolean;
  dueMs: number;
}

/** Opens an empty list. `settleMs` is how long a path must have rested. `onDue` is called with the time of each check. */
export function openChecks(settleMs: number, onDue: (atMs: number) => void) {
  const checks = new Map<RelativePath, Check>();
  let allAtMs: number | undefined;
  let isAllRetry = false;
  /** Number of checks that are not retries. */
  let fresh = 0;

  const isRetry = (atMs: number, nowMs: number): boolean => atMs > nowMs + Math.max(settleMs, LOOK_MS);
  const checkOf = (path: RelativePath): Check => {
    const check = checks.get(path) ?? { firstMs: 0, isRetry: true, dueMs: Infinity };
    checks.set(path, check);
    return check;
  };
  /** Turns a retry into a check like any other. */
  const begin = (check: Check, nowMs: number): void => {
    check.isRetry = false;
    check.firstMs = nowMs;
    fresh += 1;
  };

  return {
    /** Reports whether a time is further off than a path takes to settle. */
    isRetry,
    /** Makes a path due when nothing more has happened for the settle time. */
    settle: (path: RelativePath, nowMs: number): void => {
      const check = checkOf(path);
      if (check.isRetry) begin(check, nowMs);
      check.dueMs = Math.min(nowMs + settleMs, check.firstMs + Math.max(settleMs, LOOK_MS));
      onDue(check.dueMs);
    },
    /**
     * Makes a path due at `atMs`, or sooner if it is due then anyway. A time further off than the settle time is a retry,
     * unless it `isWork` that must end before anything is idle.
     */
    checkAt: (path: RelativePath, atMs: number, nowMs: number, isWork: boolean = false): void => {
      const check = checkOf(path);
      if (check.isRetry && (isWork || !isRetry(atMs, nowMs))) begin(check, nowMs);
      check.dueMs = Math.min(check.dueMs, atMs);
      onDue(atMs);
    },
    /**
     * Makes the whole source due at `atMs`. In the future this is a retry, unless it `isWork` that must end before
     * anything is idle.
     */
    checkAll: (atMs: number, nowMs: number, isWork: boolean = false): void => {
      isAllRetry = !isWork && atMs > nowMs && (allAtMs === undefined || isAllRetry);
      allAtMs = Math.min(allAtMs ?? Infinity, atMs);
      onDue(atMs);
    },
    /** Removes and returns what is due. */
    take: (nowMs: number): Due | undefined => {
      const all = allAtMs !== undefined && allAtMs <= nowMs;
      const paths: RelativePath[] = [];
      for (const [path, check] of checks) {
        if (check.dueMs > nowMs) continue;
        checks.delete(path);
        if (!check.isRetry) fresh -= 1;
        paths.push(path);
      }
      if (all) allAtMs = undefined;
      return all || paths.length > 0 ? { all, paths } : undefined;
    },
    /** Returns when something is due next. */
    nextDueMs: (): number | undefined => {
      let next = allAtMs;
      for (const { dueMs } of checks.values()) if (next === undefined || dueMs < next) next = dueMs;
      return next;
    },
    /** Reports whether nothing is due except retries and paths for which `but` is true. */
    isQuiet: (but?: (path: RelativePath) => boolean): boolean => {
      if (allAtMs !== undefined && !isAllRetry) return false;
      if (fresh === 0 || but === undefined) return fresh === 0;
      for (const [path, check] of checks) if (!check.isRetry && !but(path)) return false;
      return true;
    },
    /** Returns the paths of which a check is due, now or later. */
    due: (): Iterable<RelativePath> => checks.keys(),
    /** Reports whether a check of the path is due, now or later. */
    isDue: (path: RelativePath): boolean => checks.has(path),
    /** The same without retries. */
    isSettling: (path: RelativePath): boolean => checks.get(path)?.isRetry === false,
  };
}
