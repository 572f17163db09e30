import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteStore } from "../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../src/kb/store/store.ts";
import type { NewResource } from "../../src/kb/store/resources.ts";
import { DEFAULT_SETTINGS } from "../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../kb/store/store-fixture.ts";
import { canMount, mountDisk, type SmallDisk } from "./mount.ts";

const mayMount = canMount();
const NEEDS_MOUNT = mayMount ? "" : " (skipped: this user may not mount a disk)";

describe.skipIf(!mayMount)(`a store whose disk is full${NEEDS_MOUNT}`, () => {
  let disk: SmallDisk;
  let store: Store;
  beforeEach(async () => {
    // The log is copied into the database from 4 MB on: room for it, and none for the copy.
    disk = mountDisk({ sizeKib: 9 * 1024 });
    store = await openSqliteStore({ path: join(disk.path, "kb.sqlite") });
  });
  afterEach(async () => {
    await store.close();
    disk.unmount();
  });

  let made = 0;
  const idOf = (number: number): string => number.toString(16).padStart(24, "0");
  const create = async (accountId: string): Promise<unknown> => {
    made += 1;
    const content = `text ${made} `.repeat(20_000);
    const id = idOf(made);
    const resource: NewResource = {
      accountId,
      id,
      tier: "fastest",
      ownerId: "ann",
      origin: "content",
      title: `title ${made}`,
      description: "",
      url: null,
      content,
      settings: DEFAULT_SETTINGS,
      createdAt: NOW,
    };
    return store.records.createResource(resource, wordsOnly(content));
  };

  it("says so to every write, goes on reading, and writes again once there is space", async () => {
    const account = await store.records.ensureAccount("local");
    let failures = 0;
    for (let tries = 0; tries < 80 && failures < 10; tries += 1) {
      const error: unknown = await create(account.id).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) continue;
      failures += 1;
      expect(error).toMatchObject({ code: "disk_full" });
    }
    expect(failures).toBe(10);
    const [collection] = await store.records.collections(account.id);
    expect(collection?.resources).toBeGreaterThan(0);
    disk.grow(64 * 1024);
    await create(account.id);
    expect((await store.records.collections(account.id))[0]?.resources).toBe(
      (collection?.resources ?? 0) + 1,
    );
  });

  it("deletes resources and an agent, and revokes a key, while no byte is free, and then writes again", async () => {
    await store.close();
    disk.grow(64 * 1024);
    const path = join(disk.path, "roomy.sqlite");
    store = await openSqliteStore({ path });
    const account = await store.records.ensureAccount("local");
    const first = made + 1;
    for (let tries = 0; tries < 6; tries += 1) await create(account.id);
    const { records } = store;
    const dates = { createdAt: NOW, expiresAt: null, revokedAt: null };
    const key = { accountId: account.id, id: "key" };
    const named = { ...key, sha256: "0".repeat(64), hint: "kb_abcde", name: "a key" };
    await records.putKey({ ...named, ...dates, scopes: ["read"] });
    disk.fill();
    await expect(create(account.id)).rejects.toMatchObject({ code: "disk_full" });
    expect(await records.changeKey({ ...key, revokedAt: NOW })).toMatchObject({ revokedAt: NOW });
    for (let number = first; number < first + 6; number += 1) {
      const deleted = await store.records.deleteResource({
        accountId: account.id,
        id: idOf(number),
        nowIso: NOW,
      });
      expect(deleted?.isDeleted).toBe(true);
    }
    expect((await store.records.collections(account.id))[0]?.resources).toBe(0);
    disk.free();
    await create(account.id);
    // The answer comes before the reserve is taken; the next one behind it.
    await create(account.id);
    expect(statSync(`${path}-reserve`)).toMatchObject({ size: 4 * 1024 * 1024 });
  });

  it("deletes large resources though its temporary files would lie on that disk", async () => {
    const program = join(import.meta.dirname, "delete-on-full-disk.ts");
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    expect(JSON.parse(stdout)).toEqual(["deleted", "deleted", "deleted"]);
  });

  it("a full store has room again for what is as large as what was deleted, when it filled the disk itself", async () => {
    await store.close();
    disk.grow(64 * 1024);
    store = await openSqliteStore({ path: join(disk.path, "roomy.sqlite") });
    const account = await store.records.ensureAccount("local");
    const ids: string[] = [];
    for (let failures = 0; failures < 3;) {
      const created = await create(account.id).catch(() => undefined);
      if (created === undefined) failures += 1;
      else ids.push(idOf(made));
    }
    for (const id of ids.slice(0, 10)) {
      expect(await store.records.deleteResource({ accountId: account.id, id, nowIso: NOW })).toBeDefined();
    }
    await create(account.id);
  });
});
