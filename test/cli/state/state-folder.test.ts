import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  ensureKey,
  forgetServiceAddress,
  makeServiceFolder,
  makeStateFolder,
  readKeyFile,
  readServiceAddress,
  type StateFolder,
  writeServiceAddress,
} from "../../../src/cli/state/state-folder.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { lockFolder } from "../../../src/lib/folder-lock.ts";
import { openSqlite } from "../../../src/sync/ledger/database/open.ts";

let parent: string;
let state: StateFolder;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "kbsync-state-"));
  state = makeStateFolder(join(parent, "a", "state"));
});
afterEach(() => rmSync(parent, { recursive: true }));

it("a state folder is open to its owner alone", () => {
  expect(statSync(state.path).mode & 0o777).toBe(0o700);
});

it("closes a folder of its own that was open to others", () => {
  chmodSync(state.path, 0o755);
  writeFileSync(join(state.path, "ledger.mark"), "{}");
  makeStateFolder(state.path);
  expect(statSync(state.path).mode & 0o777).toBe(0o700);
});

it("leaves a folder with other files as it is, closes what is its own in it, and keeps its databases to its owner", () => {
  const shared = join(parent, "shared");
  mkdirSync(shared);
  writeFileSync(join(shared, "index.html"), "a page that others read");
  mkdirSync(join(shared, "service"));
  for (const path of [shared, join(shared, "service")]) chmodSync(path, 0o755);
  makeStateFolder(shared);
  expect(statSync(shared).mode & 0o777).toBe(0o755);
  expect(statSync(join(shared, "service")).mode & 0o777).toBe(0o700);

  lockFolder(shared, "daemon").release();
  const ledger = openSqlite(join(shared, "ledger.db"));
  ledger.pragma("user_version");
  for (const name of ["daemon.lock", "ledger.db", "ledger.db-wal", "ledger.db-shm"])
    expect([name, statSync(join(shared, name)).mode & 0o777]).toEqual([name, 0o600]);
  ledger.close();
});

it("refuses a folder with other files that every user may write to", () => {
  const shared = join(parent, "shared");
  mkdirSync(shared);
  writeFileSync(join(shared, "notes.txt"), "");
  chmodSync(shared, 0o777);
  expect(() => makeStateFolder(shared)).toThrow(
    expect.objectContaining({ code: "state_unusable", subject: shared }),
  );
  expect(statSync(shared).mode & 0o777).toBe(0o777);
});

it("closes a ledger and a store that were readable by others", async () => {
  const ledger = join(state.path, "ledger.db");
  openSqlite(ledger).close();
  const store = join(state.path, "kb.sqlite");
  await (await openSqliteStore({ path: store })).close();
  for (const file of [ledger, store]) chmodSync(file, 0o644);
  openSqlite(ledger).close();
  await (await openSqliteStore({ path: store })).close();
  for (const file of [ledger, store]) expect(statSync(file).mode & 0o777).toBe(0o600);
});

it.each([["a key", ensureKey, () => state.keyFile]])(
  "makes %s once, mode 0600, and mends a mode that was opened",
  (_name, ensure, fileOf) => {
    expect(ensure(state, () => "kb_one")).toBe("kb_one");
    expect(statSync(fileOf()).mode & 0o777).toBe(0o600);
    chmodSync(fileOf(), 0o644);
    expect(ensure(state, () => "kb_two")).toBe("kb_one");
    expect(statSync(fileOf()).mode & 0o777).toBe(0o600);
  },
);

it.each([
  ["no file", undefined, undefined],
  ["a line with its end", "kb_x\n", "kb_x"],
  ["Windows line ends and blanks", "  kb_x \r\n\r\n", "kb_x"],
])("reads a key file: %s", (_name, text, key) => {
  const path = join(parent, "key");
  if (text !== undefined) writeFileSync(path, text);
  expect(readKeyFile(path)).toBe(key);
});

it.each([
  ["empty", ""],
  ["not ASCII", "schlüssel\n"],
  ["two words", "a key\n"],
  ["several lines", "kb_x\nmore\n"],
])("refuses a key file that is %s", (_name, text) => {
  const path = join(parent, "key");
  writeFileSync(path, text);
  expect(() => readKeyFile(path)).toThrow(/contains no key/);
});

it("remembers where the service of this process answers, and forgets it", () => {
  expect(readServiceAddress(state)).toBeUndefined();
  writeServiceAddress(state, "http://127.0.0.1:1");
  expect(readServiceAddress(state)).toEqual({ url: "http://127.0.0.1:1", pid: process.pid, notApplied: [] });
  forgetServiceAddress(state);
  expect(readServiceAddress(state)).toBeUndefined();
  writeFileSync(state.addressFile, "{ half");
  expect(readServiceAddress(state)).toBeUndefined();
});

it("says when the state folder cannot be made", () => {
  writeFileSync(join(parent, "file"), "");
  expect(() => makeStateFolder(join(parent, "file", "state"))).toThrow(
    /cannot create the state folder .*ENOTDIR/,
  );
});

describe("reports an unusable state folder with its path and a hint", () => {
  const unusable = (subject: string) =>
    expect.objectContaining({ code: "state_unusable", subject, hint: expect.any(String) as string });

  it("reports an unusable state folder where the service's folder cannot be made", () => {
    writeFileSync(state.serviceDir, "");
    expect(() => makeServiceFolder(state)).toThrow(unusable(state.serviceDir));
  });

  it("reports an unusable state folder where the key and the address cannot be written", () => {
    rmSync(state.path, { recursive: true });
    expect(() => ensureKey(state, () => "kb_one")).toThrow(unusable(state.keyFile));
    expect(() => writeServiceAddress(state, "http://127.0.0.1:1")).toThrow(unusable(state.addressFile));
  });

  it("reports an unusable state folder where the pid cannot be written, and releases the lock", () => {
    const pidFile = join(state.path, "daemon.pid");
    mkdirSync(pidFile);
    expect(() => lockFolder(state.path, "daemon")).toThrow(unusable(state.path));
    rmSync(pidFile, { recursive: true });
    lockFolder(state.path, "daemon").release();
  });
});

it("says so where folders cannot be made at all, instead of trying for ever", () => {
  expect(() => makeStateFolder("/proc/none/state")).toThrow(/cannot create the state folder .*ENOENT/);
});
