import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import { SECOND, type Happening, type History } from "../history.ts";
import type { World } from "./world.ts";

/**
 * Asks for the status again and again while the history happens: where it says that all is in agreement, files that the
 * daemon could know about have a resource with what they hold.
 */
export function askForStatus(world: World, history: History, untilMs: number): void {
  const { clock, runner, judge } = world;
  const { statusEveryMs } = history.conditions;
  if (statusEveryMs === undefined) return;
  // An update that nobody waits for any more may act after a newer one: a later list shows it.
  const isKnowable = !history.happenings.some(isUnknowable) && history.conditions.slow === undefined;
  const behindNow = watchBehind(world, history);
  const ask = (): void => {
    const behind = behindNow();
    const daemon = runner.running();
    if (daemon !== undefined && isKnowable && saysAgreement(daemon.status())) {
      const wrong = behind.filter(({ sinceMs }) => clock.nowMs() - sinceMs > NOTICED_MS);
      const words = wrong.map((each) => each.words).join("; ");
      if (wrong.length > 0) judge.fail("dishonest", `the status says that all agrees: ${words}`);
    }
    if (clock.nowMs() < untilMs) clock.at(clock.nowMs() + statusEveryMs, { alive: true }, ask);
  };
  clock.at(statusEveryMs, { alive: true }, ask);
}

/** A file that differs from its resource although the daemon can see it. */
export interface BehindFile {
  readonly path: string;
  /** When it changed to what it is, and since when its resource is another one, as far as it was asked for. */
  readonly changedMs: number;
  readonly sinceMs: number;
  readonly words: string;
}

/** Returns a function that returns the files which are behind. It knows since when by how often it is called. */
export function watchBehind(
  { clock, judge, expectations }: World,
  { happenings }: History,
): () => readonly BehindFile[] {
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
        clock.nowMs() <= each.atMs + each.forMs + NOTICED_MS,
    );
  let behindSince = new Map<string, { readonly sinceMs: number; readonly writtenMs: number | undefined }>();
  return () => {
    const isSeen = (path: string): boolean => !isSpoilt(path) && !isAway(path);
    const behind = judge.behind().filter(({ file }) => isSeen(file.path));
    const files = behind.map(({ file: { path, place, changedMs }, words, writtenMs }) => {
      const before = behindSince.get(path);
      // A file that changes all the time is behind since the first of the changes that were not sent.
      const isSame = before !== undefined && before.writtenMs === writtenMs;
      const sinceMs = isSame ? Math.min(before.sinceMs, changedMs) : changedMs;
      // Until the rules let it in again it was no file to sync.
      const thereMs = expectations.at(place)?.sinceMs ?? sinceMs;
      return { path, changedMs, sinceMs: Math.max(sinceMs, thereMs), writtenMs, words };
    });
    behindSince = new Map(files.map((each) => [each.path, each]));
    return files;
  };
}

/** A change is noticed so soon at the latest, and counted as waiting from then on. */
const NOTICED_MS = 10_000;

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
export function isUnknowable(happening: Happening): boolean {
  if (happening.kind === "fault") return happening.fault === "acts-late";
  return ["deaf", "degraded", "reset", "restore", "page"].includes(happening.kind);
}
