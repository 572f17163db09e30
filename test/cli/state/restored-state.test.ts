import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { maintainStore, storeFile } from "../../../src/cli/state/embedded-store.ts";
import { checkStage } from "../../../src/cli/state/restored-state.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import { ledgerFile, openLedger } from "../../../src/sync/ledger/ledger.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-stage-"));
  openLedger(folder, "service").close();
  const store = storeFile(stateFolder(folder));
  mkdirSync(dirname(store));
  maintainStore(store).upgrade();
});
afterEach(() => rmSync(folder, { recursive: true }));

it("a restore takes a backup of the present version", () => {
  expect(checkStage(folder)).toEqual([]);
});

it.each([
  ["store_older", () => storeFile(stateFolder(folder))],
  ["ledger_older", () => ledgerFile(folder)],
])(
  "a restore refuses a backup from before the first release and advises to keep the state: %s",
  (code, path) => {
    const db = new Database(path());
    db.pragma("user_version = 12");
    db.close();
    expect(() => checkStage(folder)).toThrow(
      expect.objectContaining({
        code,
        message: expect.stringMatching(
          /^the backup cannot be restored: .* before the first release/,
        ) as string,
        hint: "The state folder was left as it is. Restore the backup with the build that made it.",
      }) as Error,
    );
  },
);
