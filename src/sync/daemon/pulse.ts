import type { PaceState } from "../../wire/daemon-status.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";
import { paceOf } from "./status.ts";

/** A sample of one part of a daemon's work. */
export interface Beat {
  /** Increases with what the part does. */
  readonly moves: number;
  /** There is work to do now. */
  readonly atWork: boolean;
}

/**
 * A sample of a daemon's work, in two parts: otherwise the regular checks of the folders would hide a hanging queue for
 * ever.
 */
export interface DaemonPulse {
  /** Files that are read and sent. Increases with files read, requests ended and jobs done. */
  readonly queue: Beat;
  /**
   * Checks of the folders. Increases with their steps, and with requests ended, because a check may list what the
   * service has.
   */
  readonly scan: Beat;
  /** `limited` counts as open: a limit slows work, but does not stop it. */
  readonly service: PaceState["kind"];
}

/** Samples a daemon's work now. */
export function pulseOf(parts: Parts, sources: DaemonSources): DaemonPulse {
  const pace = paceOf(parts);
  return {
    queue: {
      moves: parts.steps().requests + parts.work.read() + parts.work.progress().done,
      atWork: sources.all().some((source) => source.isSending()),
    },
    scan: {
      moves: parts.steps().requests + parts.steps().scans,
      atWork: sources.all().some((source) => source.isScanning()),
    },
    service: pace.kind === "limited" ? "open" : pace.kind,
  };
}
