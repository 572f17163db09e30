import type { Check } from "./check.ts";
import { diskCheck, nodeCheck } from "./machine.ts";
import { modelCheck } from "./model.ts";
import { keyCheck, notAppliedFindings, serviceCheck } from "./service.ts";
import { sourcesCheck } from "./sources.ts";
import { accessCheck, ledgerCheck, storeCheck, uploadsCheck } from "./state.ts";

export type { Check, Checked, DoctorGround } from "./check.ts";

/** Checks that a daemon that runs answers. */
const daemonCheck: Check = {
  name: "daemon",
  run: async ({ daemon }) => {
    const status = await daemon();
    if (status === undefined) return { seen: "not running", findings: [] };
    return { seen: `running (process ${status.pid})`, findings: notAppliedFindings(status.notApplied) };
  },
};

/** All checks in the order of the report: machine, folders, stored data, daemon, service. */
export const CHECKS: readonly Check[] = [
  nodeCheck,
  diskCheck,
  sourcesCheck,
  accessCheck,
  ledgerCheck,
  storeCheck,
  uploadsCheck,
  daemonCheck,
  serviceCheck,
  keyCheck,
  modelCheck,
];
