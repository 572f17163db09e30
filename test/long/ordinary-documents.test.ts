import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWorld, type World } from "../sync/daemon/harness.ts";

const samples = join(import.meta.dirname, "../../../shared/data");
describe.skipIf(!existsSync(samples))(
  "the check for secrets (skipped without ../shared/data)",
  { timeout: 600_000 },
  () => {
    let world: World;
    beforeAll(async () => {
      world = await openWorld();
    });
    afterAll(() => world.end());

    it("lets every ordinary document pass", async () => {
      const daemon = world.daemon({
        settings: { blockSecrets: true },
        sources: [{ ...world.source(), path: samples, absolutePath: samples }],
      });
      await daemon.syncOnce();
      // Others cannot be read.
      const secret = daemon.files({ limit: 1000 }).filter(({ code }) => code === "secret");
      expect(secret.map(({ path }) => path)).toEqual([]);
      expect(world.service.live().length).toBeGreaterThan(300);
    });
  },
);
