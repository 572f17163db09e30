import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { syncSettings } from "../settings.ts";
import { recoverLedger, type Daemon, type DaemonOptions } from "../../../src/sync/daemon.ts";
import type { FakeOptions } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

let world: World | undefined;
afterEach(async () => {
  await world?.end();
  world = undefined;
});

/** A folder of all kinds in agreement with a service. */
const openSynced = async (options: FakeOptions): Promise<World> => {
  await world?.end();
  world = await openWorld(options);
  world.write("a.txt", "text a");
  world.write("b/c.md", "# Title of c\n\ntext c");
  world.write("d.pdf", Buffer.from("%PDF-1.4\nsome pages"));
  world.write("e.url", "[InternetShortcut]\nURL=https://example.com");
  await world.sync();
  return world;
};
const idsIn = ({ service }: World): Record<string, string> =>
  Object.fromEntries(service.live().map(({ title, _id }) => [title, _id]));
const optionsOf = (at: World, step?: (name: string) => void): DaemonOptions => ({
  stateDir: at.stateDir,
  service: { apiUrl: at.service.url, dbUrl: at.service.url, pauthkey: at.service.key },
  sources: [at.source()],
  sync: syncSettings({ settleMs: 0 }),
  ...(step && { step }),
});

class Crash extends Error {}
const crashAt = (nth: number): ((name: string) => void) => {
  let count = 0;
  return (name) => {
    count += 1;
    if (count >= nth) throw new Crash(name);
  };
};
const attempt = async (work: () => Promise<unknown>): Promise<boolean> =>
  work().then(
    () => true,
    () => false,
  );

describe.each([{ collections: true }, {}])("with a service of %o", (options) => {
  it("recover may be interrupted at any point and repeated", async () => {
    for (let nth = 1; ; nth += 1) {
      const at = await openSynced(options);
      const before = idsIn(at);
      writeFileSync(join(at.stateDir, "ledger.db"), "no database at all");
      const done = await attempt(() => recoverLedger(optionsOf(at, crashAt(nth)), { dryRun: false }));
      await recoverLedger(optionsOf(at), { dryRun: false });
      await at.sync();
      expect(idsIn(at), `crash at effect ${nth}`).toEqual(before);
      if (done) break;
      expect(nth).toBeLessThan(100);
    }
  });

  it("a sync that is interrupted while it adopts after a lost ledger continues without recover", async () => {
    for (let nth = 1; ; nth += 1) {
      const at = await openSynced(options);
      const before = idsIn(at);
      for (const name of readdirSync(at.stateDir).filter((file) => file.startsWith("ledger.db")))
        rmSync(join(at.stateDir, name));
      const daemon: Daemon = at.daemon({ step: crashAt(nth) });
      const passed = await attempt(() => daemon.syncOnce());
      const closed = await attempt(() => daemon.close());
      await at.sync();
      expect(idsIn(at), `crash at effect ${nth}`).toEqual(before);
      if (passed && closed) break;
      expect(nth).toBeLessThan(100);
    }
  });
});
