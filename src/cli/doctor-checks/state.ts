import { checkUploads } from "../../kb/resources/check-files.ts";
import { checkStore } from "../../kb/store/sqlite/check.ts";
import { knownUploads } from "../../kb/store/sqlite/known-uploads.ts";
import { isThere } from "../../lib/is-there.ts";
import { checkLedger } from "../../sync/ledger/check.ts";
import { thousands } from "../progress.ts";
import { storeFile, uploadsFolder } from "../state-parts.ts";
import type { Check, Checked } from "./check.ts";

const NONE: Checked = { seen: "none yet", findings: [] };

/** The ledger's own consistency. */
export const ledgerCheck: Check = {
  name: "ledger",
  run: ({ state, quick }) => {
    const report = checkLedger(state.path, { quick });
    return report === undefined
      ? NONE
      : { seen: `${thousands(report.files)} files`, findings: report.findings };
  },
};

/** The store of the embedded service. */
export const storeCheck: Check = {
  name: "store",
  run: ({ state, quick }) => {
    const report = checkStore(storeFile(state), { quick });
    if (report === undefined) return NONE;
    const { resources, chunks, findings } = report;
    return { seen: `${thousands(resources)} documents, ${thousands(chunks)} chunks`, findings };
  },
};

/** The uploaded files that the store knows. */
export const uploadsCheck: Check = {
  name: "uploads",
  run: async ({ state, quick, signal }) => {
    if (!isThere(storeFile(state))) return NONE;
    const known = knownUploads(storeFile(state));
    const findings = await checkUploads(uploadsFolder(state), known, { quick, signal });
    return { seen: `${thousands(known.length)} files`, findings };
  },
};
