import type { Stats } from "node:fs";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { integerColumn } from "../../../src/lib/integer-column.ts";
import { rootIdentityOf } from "../../../src/sync/scan/disk/root-identity.ts";
import { openWorld } from "../daemon/harness.ts";

/** Inode and device numbers as on mergerfs and GlusterFS: in the upper half of 64 bits. */
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const large = <T extends Stats | undefined>(stats: T): T =>
    stats === undefined ? stats : Object.assign(stats, { ino: 2 ** 63 + stats.ino * 4096, dev: 2 ** 63 });
  return {
    ...real,
    lstatSync: (...args: Parameters<typeof real.lstatSync>) => large(real.lstatSync(...args) as Stats),
    statSync: (...args: Parameters<typeof real.statSync>) => large(real.statSync(...args) as Stats),
    fstatSync: (fd: number) => large(real.fstatSync(fd)),
  };
});

it("syncs and follows a file whose inode and device numbers need all 64 bits", async () => {
  const world = await openWorld();
  world.write("a.md", "# A\ntext");
  await world.sync();
  const [before] = world.service.live();
  renameSync(join(world.root, "a.md"), join(world.root, "b.md"));
  await world.sync();
  expect(world.service.live()).toMatchObject([
    { _id: before?._id, description: expect.stringContaining("b.md") as unknown },
  ]);
  const requests = world.service.requests.length;
  await world.sync();
  expect(world.service.requests.length).toBe(requests);
  await world.end();
});

it("leaves numbers unchanged that fit a column of integers", () => {
  expect([0, 1, 2 ** 53, 2 ** 63 - 2048].map(integerColumn)).toEqual([0, 1, 2 ** 53, 2 ** 63 - 2048]);
  const folded = integerColumn(2 ** 63);
  expect(Number.isSafeInteger(folded)).toBe(true);
  expect(folded).not.toBe(integerColumn(2 ** 63 + 2048));
  expect(rootIdentityOf({ dev: 2 ** 64 - 2048, ino: 2 ** 63, birthtimeMs: 0 })).toEqual({
    dev: integerColumn(2 ** 64 - 2048),
    ino: folded,
  });
});
