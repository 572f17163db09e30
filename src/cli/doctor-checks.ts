import type { Check } from "./doctor-checks/check.ts";
import { diskCheck, nodeCheck } from "./doctor-checks/machine.ts";
import { modelCheck } from "./doctor-checks/model.ts";
import { clockCheck, keyCheck, serviceCheck } from "./doctor-checks/service.ts";
import { sourcesCheck } from "./doctor-checks/sources.ts";
import { accessCheck, ledgerCheck, storeCheck, uploadsCheck } from "./doctor-checks/state.ts";
import { watchesCheck } from "./doctor-checks/watches.ts";

export type { Check, Checked, DoctorGround } from "./doctor-checks/check.ts";

/** All checks, in the order in which they are told: the machine, the folders, what kbsync keeps, the service. */
export const CHECKS: readonly Check[] = [
  nodeCheck,
  diskCheck,
  sourcesCheck,
  watchesCheck,
  accessCheck,
  ledgerCheck,
  storeCheck,
  uploadsCheck,
  serviceCheck,
  keyCheck,
  clockCheck,
  modelCheck,
];
