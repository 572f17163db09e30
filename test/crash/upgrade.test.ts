import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { upgradeStore } from "../../src/kb/store/sqlite/resources/known-uploads.ts";
import { copyOf } from "../../src/lib/upgrade.ts";
import { upgradeLedger } from "../../src/sync/ledger/restored.ts";
import { writeFixture } from "../fixtures/fixture.ts";
import { readTables } from "../fixtures/tables.ts";
import { canMount, mountDisk, type SmallDisk } from "./mount.ts";

const DISK_KIB = 1024;
const mayMount = canMount();
const NEEDS_MOUNT = mayMount ? "" : " (skipped: this user may not mount a disk)";

describe.skipIf(!mayMount)(`an upgrade on a disk without room for the copy${NEEDS_MOUNT}`, () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountDisk({ sizeKib: DISK_KIB });
  });
  afterEach(() => disk.unmount());

  it.each([
    ["ledger", 5, upgradeLedger],
    ["store", 3, upgradeStore],
  ] as const)(
    "leaves the %s as it is and says what it needs, and goes on when there is room",
    (kind, version, up) => {
      const file = join(disk.path, "old.db");
      writeFixture(`${kind}-${version}`, file);
      const before = readTables(file);
      disk.fill();
      // Room for a log and its shared memory, and for none of the copies.
      disk.grow(DISK_KIB + 80);
      expect(() => up(file)).toThrow(
        expect.objectContaining({
          code: "disk_full",
          subject: copyOf(file, version),
          message: `the ${kind} is of an older version, and cannot be copied to ${copyOf(file, version)} before it is brought up to date: no space is left on its disk`,
        }),
      );
      expect(readdirSync(disk.path).filter((name) => name.includes(".version-"))).toEqual([]);
      disk.free();
      expect(readTables(file)).toEqual(before);
      up(file);
      expect(readTables(copyOf(file, version))).toEqual(before);
    },
  );
});
