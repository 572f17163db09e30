import type { Config } from "../../config/load.ts";
import type { Finding } from "../../lib/finding.ts";
import type { StateFolder } from "../state/state-folder.ts";

/** What checks look at. */
export interface DoctorGround {
  readonly config: Config;
  readonly state: StateFolder;
  readonly env: NodeJS.ProcessEnv;
  /** Leaves out what reads everything there is. */
  readonly quick: boolean;
  readonly signal: AbortSignal;
}

/** What a check saw. */
export interface Checked {
  /** In a few words, for a person: what there was to check. */
  readonly seen: string;
  readonly findings: readonly Finding[];
}

/** One thing that `kbsync doctor` looks at. It changes nothing, and works beside a running daemon and service. */
export interface Check {
  /** Stable, kebab-case, at most eight characters. */
  readonly name: string;
  run(ground: DoctorGround): Checked | Promise<Checked>;
}
