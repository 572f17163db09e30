import { existsSync } from "node:fs";
import type { Config } from "../config/load.ts";
import { checkUploads } from "../kb/resources/check-files.ts";
import { checkStore } from "../kb/store/sqlite/check.ts";
import { knownUploads } from "../kb/store/sqlite/known-uploads.ts";
import type { Finding } from "../lib/finding.ts";
import { checkLedger } from "../sync/ledger/check.ts";
import { thousands } from "./progress.ts";
import type { StateFolder } from "./state-folder.ts";
import { storeFile, uploadsFolder } from "./state-parts.ts";

/** What checks look at. */
export interface DoctorGround {
  readonly config: Config;
  readonly state: StateFolder;
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
  /** Stable, kebab-case. */
  readonly name: string;
  run(ground: DoctorGround): Checked | Promise<Checked>;
}

const NONE: Checked = { seen: "none yet", findings: [] };

/** All checks, in the order in which they are told. */
export const CHECKS: readonly Check[] = [
  {
    name: "ledger",
    run: ({ state, quick }) => {
      const report = checkLedger(state.path, { quick });
      return report === undefined
        ? NONE
        : { seen: `${thousands(report.files)} files`, findings: report.findings };
    },
  },
  {
    name: "store",
    run: ({ state, quick }) => {
      const report = checkStore(storeFile(state), { quick });
      if (report === undefined) return NONE;
      const { resources, chunks, findings } = report;
      return { seen: `${thousands(resources)} documents, ${thousands(chunks)} chunks`, findings };
    },
  },
  {
    name: "uploads",
    run: async ({ state, quick, signal }) => {
      if (!existsSync(storeFile(state))) return NONE;
      const known = knownUploads(storeFile(state));
      const findings = await checkUploads(uploadsFolder(state), known, { quick, signal });
      return { seen: `${thousands(known.length)} files`, findings };
    },
  },
];
