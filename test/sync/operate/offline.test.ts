import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { exitCodeOf } from "../../../src/cli/output/exit-code.ts";
import { changeLedger, readLedger } from "../../../src/sync/operate/offline.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { openWorld, type World } from "../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
  world.write("a.txt", "a");
  await world.sync();
});
afterEach(async () => {
  await world.end();
});

/** The error of a use of the ledger when SQLite reports this one. */
async function failing(code: string, use: typeof changeLedger = changeLedger): Promise<unknown> {
  try {
    await use(world.stateDir, () => {
      throw Object.assign(new Error("database or disk is full"), { code });
    });
  } catch (error) {
    return error;
  }
  return undefined;
}

it("reports an operator's change on a full disk as an expected failure with its exit code", async () => {
  const error = await failing("SQLITE_FULL");
  expect(error).toMatchObject({
    code: "disk_full",
    hint: expect.stringContaining("Free some space") as string,
  });
  expect(exitCodeOf(error)).toBe(74);
});

it("lists held deletes without approving them", async () => {
  world.write("b.txt", "b");
  await world.sync();
  for (const name of ["a.txt", "b.txt"]) rmSync(join(world.root, name));
  await world.sync();
  const approval = { source: world.root, held: 2, reason: "the folder was emptied" };
  expect(readStatus(world.stateDir, 0)?.sources).toMatchObject([{ approval }]);
  await world.sync();
  expect(world.service.live()).toHaveLength(2);
  expect(await readLedger(join(world.stateDir, "none"), async (ledger) => ledger)).toBeUndefined();
});

it("reports other failures of SQLite as the ledger's, and a defect as a defect", async () => {
  expect(await failing("SQLITE_READONLY")).toMatchObject({ code: "ledger_unusable" });
  expect(await failing("SQLITE_IOERR_READ")).toMatchObject({ code: "ledger_unreachable" });
  expect(await failing("SQLITE_BUSY")).toMatchObject({ code: "ledger_unreachable" });
  expect(await failing("SQLITE_IOERR_READ", readLedger)).toMatchObject({ code: "ledger_unreachable" });
  expect(await failing("ERR_ASSERTION")).toMatchObject({ code: "ERR_ASSERTION" });
});
