import { setTimeout as sleep } from "node:timers/promises";
import type { SharedTurns } from "../queue/shared-turns.ts";
import {
  afterStep,
  beginPass,
  type CheckRecord,
  type Damage,
  type DamageCheck,
} from "../store/damage-check.ts";
import type { Records } from "../store/records.ts";
import type { FileStore } from "../uploads/file-store.ts";

/** How fast a check works. */
export interface CheckPace {
  /** Longest work without a pause. One step reads up to 2000 chunks or a megabyte of the index. */
  readonly workMs: number;
  /** Pause after work, as a multiple of its duration: with 200, a check takes half a percent of a core of this process, and of the database. */
  readonly pauseTimes: number;
  /** Least pause, which bounds the check to a few megabytes a second on any machine. */
  readonly pauseMinMs: number;
  /** Time from the begin of one pass to that of the next. */
  readonly passMs: number;
  /** Pause between checks whether a pass is due, and after a failure. */
  readonly lookMs: number;
}

const PACE: CheckPace = {
  workMs: 20,
  pauseTimes: 200,
  pauseMinMs: 1000,
  passMs: 24 * 3_600_000,
  lookMs: 60_000,
};

/** Characters of a token that a message contains. With the whole token anyone can read the file. */
const TOKEN_SHOWN = 8;

export interface StoreCheckParts {
  readonly check: DamageCheck;
  /** The storage of uploaded files, if all processes share it. */
  readonly files: Pick<FileStore, "holds"> | undefined;
  readonly records: Pick<Records, "file">;
  readonly turns: Pick<SharedTurns, "runIfFree">;
  readonly nowMs: () => number;
  /** Called once for each damage. */
  readonly onDamage: (damage: Damage) => void;
  readonly onProblem: (error: unknown) => void;
  readonly pace?: CheckPace | undefined;
}

/** Checks a store for damage in the background, slowly, and again and again; of several processes one at a time does. */
export interface StoreCheck {
  start(): void;
  /** Ends after the current step. */
  close(): Promise<void>;
}

/** Opens a check. A pass that ended early goes on where it was, in any process. */
export function openStoreCheck(parts: StoreCheckParts): StoreCheck {
  const { check, turns, nowMs, pace = PACE } = parts;
  const stop = new AbortController();
  const { signal } = stop;
  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { ref: false, signal }).catch(() => undefined);

  /** Makes one pass, or the rest of it. */
  const pass = async (): Promise<void> => {
    let record = (await check.record()) ?? beginPass(undefined, nowMs());
    if (record.position === undefined) {
      if (nowMs() - record.now.startedMs < pace.passMs) return;
      record = beginPass(record, nowMs());
    }
    while (record.position !== undefined && !signal.aborted) {
      const startMs = performance.now();
      do record = await step(parts, record, record.position);
      while (record.position !== undefined && performance.now() - startMs < pace.workMs);
      await check.save(record);
      const workedMs = performance.now() - startMs;
      if (record.position !== undefined) await pause(Math.max(pace.pauseMinMs, workedMs * pace.pauseTimes));
    }
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await turns.runIfFree("check", pass).catch(parts.onProblem);
      await pause(pace.lookMs);
    }
  };
  let running: Promise<void> | undefined;
  return {
    start: () => {
      running ??= run();
    },
    close: async () => {
      stop.abort();
      await running;
    },
  };
}

/** Makes one step of a pass, and reports the damage that is not known yet. */
async function step(
  { check, files, records, nowMs, onDamage }: StoreCheckParts,
  before: CheckRecord,
  position: string,
): Promise<CheckRecord> {
  const { damage, files: recorded, next } = await check.step(position);
  const missing: Damage[] = [];
  for (const { token, name, account } of files === undefined ? [] : recorded) {
    if (await files?.holds(token)) continue;
    // Housekeeping may have removed it meanwhile.
    if ((await records.file(token)) === undefined) continue;
    missing.push({
      rule: "missingFiles",
      subject: `file ${name}, whose token begins with ${token.slice(0, TOKEN_SHOWN)}`,
      account,
    });
  }
  const { record, fresh } = afterStep(before, [...damage, ...missing], next, nowMs());
  for (const each of fresh) onDamage(each);
  return record;
}
