import Database from "better-sqlite3";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { restrictKeys } from "../../../../../src/kb/store/sqlite/accounts/restricted-keys.ts";
import { sqliteMaintenance } from "../../../../../src/kb/store/sqlite/maintenance.ts";
import { openForWriting } from "../../../../../src/kb/store/sqlite/database/connection.ts";
import { prepareAccountWrites } from "../../../../../src/kb/store/sqlite/accounts/accounts.ts";
import type { KeyRecord } from "../../../../../src/kb/store/accounts.ts";
import { Tier } from "../../../../../src/wire/primitives.ts";

const NOW = "2026-01-02T03:04:05.678Z";
const SOON = "2026-02-01T00:00:00.000Z";
const LATER = "2027-01-01T00:00:00.000Z";

let folder: string;
let made = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-carried-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Part = Partial<KeyRecord> & { readonly account?: string };

const shaOf = (at: number): string => String(at).padStart(64, "0");

/** Creates a store file with these keys; key number n is the same key in every file. */
function storeWith(...keys: readonly Part[]): string {
  const path = join(folder, `${++made}.sqlite`);
  const db = openForWriting(path);
  const writes = prepareAccountWrites(db);
  for (const [at, { account = "local", ...part }] of keys.entries()) {
    const { id: accountId } = writes.ensureAccount(account, [
      account,
      ...Tier.options.map((tier) => account + tier),
    ]);
    const fixed = {
      sha256: shaOf(at),
      id: String(at).padStart(24, "0"),
      hint: "kb_12345",
      name: `key ${at}`,
    };
    const free = { scopes: ["read"], createdAt: NOW, expiresAt: null, revokedAt: null } as const;
    writes.putKey({ ...fixed, ...free, accountId, ...part });
  }
  db.close();
  return path;
}

describe("a restored key", () => {
  it.each<[string, Part, Part, Part]>([
    ["leaves an unchanged key as it is", {}, {}, {}],
    ["revokes a key that was revoked since", {}, { revokedAt: SOON }, { revokedAt: SOON }],
    ["keeps the time of an earlier revocation", { revokedAt: NOW }, { revokedAt: SOON }, { revokedAt: NOW }],
    ["leaves a key revoked that the replaced store has as valid", { revokedAt: NOW }, {}, { revokedAt: NOW }],
    ["applies an expiry that was set since", {}, { expiresAt: SOON }, { expiresAt: SOON }],
    ["applies an earlier expiry", { expiresAt: LATER }, { expiresAt: SOON }, { expiresAt: SOON }],
    ["does not apply a later expiry", { expiresAt: SOON }, { expiresAt: LATER }, { expiresAt: SOON }],
    ["removes a scope that was withdrawn since", { scopes: ["read", "write"] }, {}, { scopes: ["read"] }],
    ["does not add a scope that was granted since", {}, { scopes: ["read", "write"] }, { scopes: ["read"] }],
    ["restricts an admin key to its later scopes", { scopes: ["admin"] }, {}, { scopes: ["read"] }],
    ["does not make a key an admin key", {}, { scopes: ["admin"] }, { scopes: ["read"] }],
    ["leaves no scopes to a key whose scopes were all replaced", {}, { scopes: ["write"] }, { scopes: [] }],
  ])("%s", (_name, older, newer, after) => {
    const [from, into] = [storeWith(newer), storeWith(older)];
    restrictKeys(sqliteMaintenance(from).keys(), into);
    const before = { scopes: ["read"], expiresAt: null, revokedAt: null };
    expect(sqliteMaintenance(into).keys()).toMatchObject([{ sha256: shaOf(0), ...before, ...after }]);
  });
});

it("counts each restricted key once", () => {
  const from = storeWith({ revokedAt: SOON, expiresAt: SOON }, { expiresAt: SOON }, { scopes: ["read"] }, {});
  const into = storeWith({}, {}, { scopes: ["read", "write"] }, {});
  expect(restrictKeys(sqliteMaintenance(from).keys(), into)).toEqual({
    revoked: 1,
    endEarlier: 1,
    narrowed: 1,
  });
  expect(restrictKeys(sqliteMaintenance(from).keys(), into)).toEqual({
    revoked: 0,
    endEarlier: 0,
    narrowed: 0,
  });
});

it("adds revoked keys that the older store lacks, with their accounts, and no others", () => {
  const from = storeWith({ account: "other", revokedAt: SOON }, {});
  const into = storeWith();
  expect(restrictKeys(sqliteMaintenance(from).keys(), into).revoked).toBe(1);
  expect(sqliteMaintenance(into).keys()).toMatchObject([
    { sha256: shaOf(0), revokedAt: SOON, account: "other" },
  ]);
  const db = new Database(into);
  expect(db.prepare("SELECT count(*) FROM collection").pluck().get()).toBe(Tier.options.length);
  db.close();
});

it("reports a store file that it cannot read", () => {
  const page = join(folder, "page.sqlite");
  writeFileSync(page, "<html>".repeat(1000));
  expect(() => sqliteMaintenance(page).keys()).toThrow(
    expect.objectContaining({ code: "store_damaged" }) as Error,
  );
});
