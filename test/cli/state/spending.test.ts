import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Config } from "../../../src/config/load.ts";
import { parseConfig } from "../../../src/config/config-file.ts";
import { openStore, storeFile } from "../../../src/cli/state/embedded-store.ts";
import { readSpending, spendingWords } from "../../../src/cli/state/spending.ts";
import { stateFolder, type StateFolder } from "../../../src/cli/state/state-folder.ts";

const NOW_MS = Date.parse("2026-11-24T23:30:00Z");

let folder: string;
let state: StateFolder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-spending-"));
  state = stateFolder(folder);
  mkdirSync(dirname(storeFile(state)), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** No store is a database here. */
const NONE = (): Promise<undefined> => Promise.resolve(undefined);

const configWith = (kb: object): Pick<Config, "service" | "kb"> =>
  parseConfig(JSON.stringify({ kb }), "kbsync.config.json");

async function spend(day: string, units: number): Promise<void> {
  const store = await openStore(state);
  const nanos = units * 1_000_000_000;
  await store.records.spend({ spender: "embedding", day, nanos, dayMax: null, monthMax: null });
  await store.close();
}

it("reads what was spent today and this month, in UTC, beside the caps", async () => {
  await spend("2026-10-31", 100);
  await spend("2026-11-23", 1.5);
  await spend("2026-11-24", 0.0004);
  const config = configWith({ budget: { perMonth: 50 } });
  const spending = await readSpending(config, state, NOW_MS, NONE);
  expect(spending).toEqual({ today: 0.0004, thisMonth: 1.5004, perDay: null, perMonth: 50 });
  expect(spending === null ? "" : spendingWords(spending)).toBe(
    "0.0004 today, 1.5004 of 50.00 this month (UTC)",
  );
});

it("reads what was spent while a service uses the store", async () => {
  const store = await openStore(state);
  const nanos = 2_500_000_000;
  await store.records.spend({ spender: "chat", day: "2026-11-24", nanos, dayMax: null, monthMax: null });
  const config = configWith({ budget: { perDay: 5 } });
  expect(await readSpending(config, state, NOW_MS, NONE)).toMatchObject({ today: 2.5, perDay: 5 });
  await store.close();
});

it("reads nothing without a store, and without a budget", async () => {
  const budget = { budget: { perDay: 5 } };
  expect(await readSpending(configWith(budget), state, NOW_MS, NONE)).toBeNull();
  await spend("2026-11-24", 1);
  expect(await readSpending(configWith({}), state, NOW_MS, NONE)).toBeNull();
});

it("asks the database if the store is in one, and says nothing if that does not answer", async () => {
  const service = { embedded: true, database: "postgres://a@h/kb" };
  const kb = { budget: { perDay: 5 } };
  const config = parseConfig(JSON.stringify({ service, kb }), "kbsync.config.json");
  const spent = (day: string) => Promise.resolve({ day: day === "2026-11-24" ? 2e9 : 0, month: 3e9 });
  expect(await readSpending(config, state, NOW_MS, spent)).toMatchObject({
    today: 2,
    thisMonth: 3,
    perDay: 5,
  });
  expect(await readSpending(config, state, NOW_MS, NONE)).toBeNull();
});
