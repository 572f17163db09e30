import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { knownBackups } from "../../backup/known-backups.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Erased } from "../../wire/daemon.ts";
import type { Remainder } from "../../wire/erasure.ts";
import { removePlanCopies } from "./plan-copies.ts";
import type { StateFolder } from "./state-folder.ts";

/** Copies of ledger and store that kbsync made before an upgrade, a recovery or a restore, or for a plan, by their names. */
const COPIES =
  /\.version-\d+(?:\.partial.*)?$|^before-restore-|^restore$|^plan-\d+-|^ledger\.db\.(?!version-).+/;

/** Removes the copies of plans that were killed, and adds what is left in a state folder and its backups to the report of an erasure. */
export function completeErasure(done: Erased, state: StateFolder): Erased {
  // A copy that cannot be removed is named below.
  removePlanCopies(state, { own: false });
  const remains = [...done.service.remains, ...remainsOf(state)];
  return { ...done, service: { ...done.service, remains } };
}

/** Names what an erasure leaves: copies in the state folder, backups, and logs. */
function remainsOf(state: StateFolder): readonly Remainder[] {
  const copies = [state.path, state.serviceDir].flatMap((folder) =>
    namesIn(folder)
      .filter((name) => COPIES.test(name))
      .map((name) => join(folder, name)),
  );
  return [
    ...copies.map((name): Remainder => {
      return {
        kind: "copy",
        name,
        reason: `an earlier state of the data; to delete it: rm -r ${shellWord(name)}`,
      };
    }),
    ...knownBackups(state.path).map(({ path, at }): Remainder => {
      return { kind: "backup", name: path, reason: `a backup from ${at}; make a new one, and delete it` };
    }),
    {
      kind: "log",
      name: "the log of kbsync",
      reason:
        "its lines name files and documents, as `journalctl -u kbsync` shows them; kbsync does not change them",
    },
  ];
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
