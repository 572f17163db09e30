import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import type { Happening, History } from "../history.ts";
import type { World } from "./world.ts";

/**
 * Asks for the status again and again while the history happens: where it says that all is in agreement, files that the
 * daemon could know about have a resource with what they hold.
 */
export function askForStatus(world: World, { conditions, happenings }: History, untilMs: number): void {
  const { clock, runner, judge, disk } = world;
  const { statusEveryMs } = conditions;
  if (statusEveryMs === undefined) return;
  const isKnowable = !happenings.some(isUnknowable);
  const spoilt = happenings.flatMap((each) => (each.kind === "spoil" ? [each.path] : []));
  const ask = (): void => {
    const daemon = runner.running();
    if (daemon !== undefined && isKnowable && disk.root() === "here" && saysAgreement(daemon.status())) {
      const wrong = judge.wrong(
        ({ path, changedMs }) =>
          clock.nowMs() - changedMs > UNNOTICED_MS &&
          !spoilt.some((each) => path === each || path.startsWith(`${each}/`)),
      );
      if (wrong.length > 0) judge.fail("dishonest", `the status says that all agrees: ${wrong.join("; ")}`);
    }
    if (clock.nowMs() < untilMs) clock.at(clock.nowMs() + statusEveryMs, { alive: true }, ask);
  };
  clock.at(statusEveryMs, { alive: true }, ask);
}

/** A change is noticed so soon at the latest, and counted as waiting from then on. */
const UNNOTICED_MS = 10_000;

function saysAgreement({ idle, sources }: DaemonStatus): boolean {
  return (
    idle &&
    sources.every(
      (each) =>
        each.waiting === 0 &&
        each.failed === 0 &&
        each.held === 0 &&
        each.holdReason === null &&
        each.degraded === null &&
        !each.halted &&
        !each.paused,
    )
  );
}

/** What the daemon cannot notice at once: lost hints, what others did at the service, and an update that acts late. */
function isUnknowable(happening: Happening): boolean {
  if (happening.kind === "fault") return happening.fault === "acts-late";
  return happening.kind === "deaf" || happening.kind === "degraded" || happening.kind === "reset";
}
