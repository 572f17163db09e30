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
} from "../../src/cli/state-folder.ts";
import { lockFolder } from "../../src/lib/folder-lock.ts";

let parent: string;
let state: StateFolder;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "kbsync-state-"));
  state = makeStateFolder(join(parent, "a", "state"));
});
afterEach(() => rmSync(parent, { recursive: true }));

it("is open to its owner alone", () => {
  expect(statSync(state.path).mode & 0o777).toBe(0o700);
});

it("makes a key once, mode 0600, and mends a mode that was opened", () => {
  expect(ensureKey(state, () => "kb_one")).toBe("kb_one");
  expect(statSync(state.keyFile).mode & 0o777).toBe(0o600);
  chmodSync(state.keyFile, 0o644);
  expect(ensureKey(state, () => "kb_two")).toBe("kb_one");
  expect(statSync(state.keyFile).mode & 0o777).toBe(0o600);
});

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
  expect(() => readKeyFile(path)).toThrow(/holds no key/);
});

it("remembers where the service of this process answers, and forgets it", () => {
  expect(readServiceAddress(state)).toBeUndefined();
  writeServiceAddress(state, "http://127.0.0.1:1");
  expect(readServiceAddress(state)).toEqual({ url: "http://127.0.0.1:1", pid: process.pid });
  forgetServiceAddress(state);
  expect(readServiceAddress(state)).toBeUndefined();
  writeFileSync(state.addressFile, "{ half");
  expect(readServiceAddress(state)).toBeUndefined();
});

it("says when the state folder cannot be made", () => {
  writeFileSync(join(parent, "file"), "");
  expect(() => makeStateFolder(join(parent, "file", "state"))).toThrow(
    /cannot make the state folder .*ENOTDIR/,
  );
});

describe("a state folder that cannot be used is told as such, with its path and a hint", () => {
  const unusable = (subject: string) =>
    expect.objectContaining({ code: "state_unusable", subject, hint: expect.any(String) as string });

  it("where the service's folder cannot be made", () => {
    writeFileSync(state.serviceDir, "");
    expect(() => makeServiceFolder(state)).toThrow(unusable(state.serviceDir));
  });

  it("where the key and the address cannot be written", () => {
    rmSync(state.path, { recursive: true });
    expect(() => ensureKey(state, () => "kb_one")).toThrow(unusable(state.keyFile));
    expect(() => writeServiceAddress(state, "http://127.0.0.1:1")).toThrow(unusable(state.addressFile));
  });

  it("where the pid cannot be written, and the lock is given back", () => {
    const pidFile = join(state.path, "daemon.pid");
    mkdirSync(pidFile);
    expect(() => lockFolder(state.path, "daemon")).toThrow(unusable(state.path));
    rmSync(pidFile, { recursive: true });
    lockFolder(state.path, "daemon").release();
  });
});

it("says so where folders cannot be made at all, instead of trying for ever", () => {
  expect(() => makeStateFolder("/proc/none/state")).toThrow(/cannot make the state folder .*ENOENT/);
});
