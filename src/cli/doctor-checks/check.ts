import type { Config } from "../../config/load.ts";
import type { Finding } from "../../lib/finding.ts";
import { isOpenToOthers } from "../../lib/private-path.ts";
import type { LiveStatus } from "../../wire/daemon-status.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import type { StateFolder } from "../state/state-folder.ts";

/** Input of the checks. */
export interface DoctorGround {
  readonly config: Config;
  readonly state: StateFolder;
  readonly env: NodeJS.ProcessEnv;
  /** Skips checks that read all data. */
  readonly quick: boolean;
  readonly signal: AbortSignal;
  /** The running daemon; undefined: none runs. Throws what `askDaemon` throws. */
  readonly daemon: () => Promise<LiveStatus | undefined>;
  /** The configured service, as `findService` finds it. */
  readonly reached: () => Promise<ReachedService | undefined>;
}

/** Result of a check. */
export interface Checked {
  /** The subject of the check, in a few words. */
  readonly seen: string;
  readonly findings: readonly Finding[];
}

/** A check of `kbsync doctor`. It changes nothing, and works while daemon and service run. */
export interface Check {
  /** Stable, kebab-case, at most eight characters. */
  readonly name: string;
  run(ground: DoctorGround): Checked | Promise<Checked>;
}

/** Reports a file with a secret that other users may read. */
export function openFile(check: string, file: string, what: string): Finding[] {
  if (!isOpenToOthers(file)) return [];
  const message = `other users of this machine may read the ${what} ${file}`;
  return [{ check, level: "warning", subject: file, message, remedy: `chmod 600 ${file}` }];
}
