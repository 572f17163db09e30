import type { DaemonProgram } from "../../../../src/sync/daemon/control/operations.ts";

const noFolders = async (): Promise<never> => {
  throw new TypeError("this program changes no folders");
};

/** A program whose configuration never changes. */
export const FIXED_PROGRAM: DaemonProgram = {
  reload: async () => ({ applied: [], pending: [] }),
  notApplied: () => [],
  add: noFolders,
  remove: noFolders,
};
