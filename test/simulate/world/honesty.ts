import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import { SECOND, type Happening, type History } from "../history.ts";
import type { World } from "./world.ts";

/**
 * Asks for the status again and again while the history happens: where it says that all is in agreement, files that the
 * daemon could know about have a resource with what they hold.
 */
export function askForStatus(world: World, { conditions, happenings }: History, untilMs: number): void {
  const { clock, runner, judge } = world;
  const { statusEveryMs } = conditions;
  if (statusEveryMs === undefined) return;
  const isKnowable = !happenings.some(isUnknowable);
  const spoilt = happenings.flatMap((each) => (each.kind === "spoil" ? [each.path] : []));
  const isSpoilt = (path: string): boolean =>
    spoilt.some((each) => path === each || path.startsWith(`${each}/`));
  const absences = happenings.filter((each) => each.kind === "mount" || each.kind === "root");
  /** Nobody can see a file whose folder is away, or hidden by another one; it is found when that has ended. */
  const isAway = (path: string): boolean =>
    absences.some(
      (each) =>
        isBelow(path, each.kind === "root" ? "" : each.folder) &&
        each.atMs <= clock.nowMs() &&
        clock.nowMs() <= each.atMs + each.forMs + UNNOTICED_MS,
    );
  /** Since when a file's resource is another one than it should be, as far as it was asked for. */
  let behindSince = new Map<string, { readonly sinceMs: number; readonly writtenMs: number | undefined }>();
  const ask = (): void => {
    const nowMs = clock.nowMs();
    const behind = judge.behind().filter(({ file }) => !isSpoilt(file.path) && !isAway(file.path));
    behindSince = new Map(
      behind.map(({ file, writtenMs }) => {
        const before = behindSince.get(file.path);
        // A file that changes all the time is behind since the first of the changes that were not sent.
        const isSame = before !== undefined && before.writtenMs === writtenMs;
        const sinceMs = isSame ? Math.min(before.sinceMs, file.changedMs) : file.changedMs;
        return [file.path, { sinceMs, writtenMs }];
      }),
    );
    const daemon = runner.running();
    if (daemon !== undefined && isKnowable && saysAgreement(daemon.status())) {
      const wrong = behind.filter(
        ({ file }) => nowMs - (behindSince.get(file.path)?.sinceMs ?? nowMs) > UNNOTICED_MS,
      );
      const words = wrong.map((each) => each.words).join("; ");
      if (wrong.length > 0) judge.fail("dishonest", `the status says that all agrees: ${words}`);
    }
    if (clock.nowMs() < untilMs) clock.at(clock.nowMs() + statusEveryMs, { alive: true }, ask);
  };
  clock.at(statusEveryMs, { alive: true }, ask);
}

/** A change is noticed so soon at the latest, and counted as waiting from then on. */
const UNNOTICED_MS = 10_000;

/** Whether a file lies in a folder of the first source; "" is the source's own. */
function isBelow(path: string, folder: string): boolean {
  return folder === "" ? !path.startsWith(SECOND) : path.startsWith(`${folder}/`);
}

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
