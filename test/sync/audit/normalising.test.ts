import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import type { DaemonOptions } from "../../../src/sync/daemon.ts";
import type { FakeOptions } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

/** Services that store texts and titles in a form of their own. */

const TITLE_CHARS = 24;
const gentle: FakeOptions["normalise"] = (field, text) => {
  const composed = text.normalize("NFC");
  if (field === "title") return composed.slice(0, TITLE_CHARS).trimEnd();
  return field === "description" ? composed : composed.replaceAll(/[ \t]+$/gm, "");
};
/** A form that no rule of ours foresees. */
const harsh: FakeOptions["normalise"] = (field, text) => {
  if (field === "title") return text.slice(0, TITLE_CHARS);
  return field === "content" ? text.toUpperCase().replaceAll(/\s+/g, " ") : text;
};

let world: World;
const open = async (normalise: FakeOptions["normalise"], collections = true): Promise<void> => {
  world = await openWorld({ collections, ...(normalise !== undefined && { normalise }) });
};
afterEach(() => world.end());

const FILES = 8;
const nameOf = (n: number): string => `notes on the quarterly figures ${n} cafe\u0301.md`;
const writeFiles = (): void => {
  for (let n = 1; n <= FILES; n += 1)
    world.write(nameOf(n), `line ${n}  \nde\u0301j\u00e0 vu\t\n\nend ${n}\n`);
};
const prompt = (): Partial<DaemonOptions> => ({
  service: { apiUrl: world.service.url, dbUrl: world.service.url, pauthkey: world.service.key, listLagMs: 0 },
});
const audit = async (repair = false): Promise<AuditReport> => {
  const daemon = world.daemon(prompt());
  try {
    return await daemon.audit({ repair });
  } finally {
    await daemon.close();
  }
};
const ids = (): string[] =>
  world.service
    .live()
    .map(({ _id }) => _id)
    .toSorted();
const loseLedger = (): void => {
  for (const name of readdirSync(world.stateDir).filter((file) => file.startsWith("ledger.db")))
    rmSync(join(world.stateDir, name));
};
const loseFirst = (operation: "create" | "update"): void => {
  let lost = false;
  world.service.fault = (request) => {
    if (lost || request.operation !== operation) return undefined;
    lost = true;
    return { kind: "lose-answer" };
  };
};

describe.each([
  ["trims lines, composes letters and cuts titles", gentle, true, true],
  ["trims lines, composes letters and cuts titles, and names no collections", gentle, false, true],
  ["turns a text into whatever it likes", harsh, true, false],
])("a service that %s", (_what, normalise, collections, isForeseen) => {
  beforeEach(async () => {
    await open(normalise, collections);
    // Its entry in the list shows what the service does to texts.
    world.write("known.md", "known  from\tbefore\n");
    await world.sync();
    writeFiles();
  });

  it("a normalising service does not count as restored from a backup, and nothing is sent to it repeatedly", async () => {
    await world.sync();
    // A form that no answer has shown yet is sent once more, and that answer shows it.
    expect(await audit(true)).toMatchObject({
      agrees: isForeseen,
      sources: [{ resources: FILES + 1, lost: null }],
    });
    await world.sync();
    expect(await audit()).toMatchObject({ agrees: true });
    world.write(nameOf(1), "edited  \n\nsince\t\n");
    await world.sync();
    const updates = world.service.count("update");
    expect(await audit(true)).toMatchObject({ agrees: true, sources: [{ lost: null }] });
    await world.sync();
    expect(world.service.count("update")).toBe(updates);
    expect(ids()).toHaveLength(FILES + 1);
  });

  it("a normalising service that has one form of two texts lost no update", async () => {
    world.write(nameOf(1), "SHOUTED");
    await world.sync();
    world.write(nameOf(1), "shouted!  \n");
    const daemon = world.daemon();
    const { status } = await daemon.syncOnce();
    expect(status.sources).toMatchObject([{ files: FILES + 1, searchable: FILES + 1 }]);
    await daemon.close();
  });

  it("a normalising service keeps one resource of a file whose create got no answer", async () => {
    loseFirst("create");
    await world.sync();
    await world.sync();
    expect(ids()).toHaveLength(FILES + 1);
    await audit(true);
    await world.sync();
    expect(await audit()).toMatchObject({ agrees: true });
  });

  it("a normalising service keeps one resource of a file whose create a crash interrupted", async () => {
    const step = (name: string): void => {
      if (name === "create:answered") throw new Error("a crash");
    };
    await world.sync({ step }).catch(() => undefined);
    await world.sync();
    await world.sync();
    expect(ids()).toHaveLength(FILES + 1);
    await audit(true);
    await world.sync();
    expect(await audit()).toMatchObject({ agrees: true });
  });

  it("a normalising service has its resources adopted when the ledger is lost", async () => {
    await world.sync();
    const before = ids();
    loseLedger();
    await world.sync();
    expect(ids()).toEqual(before);
    await audit(true);
    await world.sync();
    expect(await audit()).toMatchObject({ agrees: true });
  });

  it("a normalising service's source is held after a restore from an old backup", async () => {
    await world.sync();
    for (const resource of world.service.live()) {
      resource.content = "an older text";
      resource.updatedAt = new Date(0).toISOString();
    }
    expect((await audit(true)).sources[0]?.lost).toContain("holds another version");
  });
});
