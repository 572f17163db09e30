import type { Daemon } from "../../../src/sync/daemon.ts";
import type { Happening, History } from "../history.ts";
import { isUnknowable, watchBehind } from "./honesty.ts";
import type { World } from "./world.ts";

/** How long each wait lasts at most. */
const WAIT_SECONDS = 40;

/**
 * Waits for agreement again and again while the history happens: a wait that ends in agreement claims that the service has what was
 * saved before it. `untilMs` is the end of the last question.
 */
export function askToWait(world: World, history: History, untilMs: number): void {
  const { clock, runner, judge, stage } = world;
  const { waitEveryMs } = history.conditions;
  if (waitEveryMs === undefined) return;
  const behindNow = watchBehind(world, history);
  const { happenings } = history;
  const isScanned = !happenings.some(isOutside) && !happenings.some(({ kind }) => kind === "clock");
  const wait = async (daemon: Daemon, askedMs: number): Promise<void> => {
    const late = new AbortController();
    // The process may die while it waits, or stop. Nothing of a dead one goes on.
    clock.at(askedMs + 1000 * WAIT_SECONDS, stage.process, () => late.abort());
    const end = await daemon.wait({ signal: late.signal }).catch(() => undefined);
    const behind = behindNow();
    // A wait for everything leaves out what the service reads from a first sync.
    if (end?.agreed !== true || end.reading > 0 || !isScanned) return;
    const wrong = behind.filter(({ changedMs }) => changedMs < askedMs);
    const words = wrong.map((each) => each.words).join("; ");
    if (wrong.length > 0) judge.fail("overclaimed", `the wait says that all agrees: ${words}`);
  };
  const ask = (): void => {
    const daemon = runner.running();
    behindNow();
    if (daemon !== undefined) void wait(daemon, clock.nowMs());
    if (clock.nowMs() < untilMs) clock.at(clock.nowMs() + waitEveryMs, { alive: true }, ask);
  };
  clock.at(waitEveryMs, { alive: true }, ask);
}

/** What a daemon that looks at the disk cannot know either. */
function isOutside(happening: Happening): boolean {
  return isUnknowable(happening) && happening.kind !== "deaf" && happening.kind !== "degraded";
}
