import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { machineId, openInstallation } from "../../../src/sync/identity/installation.ts";

let base: string;
const at = (...names: readonly string[]): string => join(base, ...names);
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "kbsync-installation-"));
  for (const name of ["state", "other state", "docs", "other docs"]) mkdirSync(at(name));
});
afterEach(() => rmSync(base, { recursive: true }));

const writer = (state = "state", machine = "m", root = "docs"): string =>
  openInstallation(at(state), machine).writer(at(root));

it("has one tag across restarts, also by another name of its folders", () => {
  symlinkSync(at("docs"), at("link"));
  expect([writer(), writer("state", "m", "link")]).toEqual([writer(), writer()]);
  expect(writer()).toMatch(/^[a-z2-7]{8}$/);
});

it("has another tag on another machine, with another state folder and for another source", () => {
  const tags = [
    writer(),
    writer("other state"),
    writer("state", "another"),
    writer("state", "m", "other docs"),
  ];
  expect(new Set(tags).size).toBe(4);
});

it("has another tag where its state folder was copied or moved, and the same one without its ledger", () => {
  const before = writer();
  writeFileSync(at("state", "ledger.db"), "");
  rmSync(at("state", "ledger.db"));
  expect(writer()).toBe(before);
  renameSync(at("state"), at("moved"));
  expect(writer("moved")).not.toBe(before);
});

it("has another tag once the file with its id is gone", () => {
  const before = writer();
  rmSync(at("state", "instance"));
  expect(writer()).not.toBe(before);
});

it("refuses a state folder whose file it cannot read", () => {
  mkdirSync(at("state", "instance"));
  expect(() => writer()).toThrow(expect.objectContaining({ subject: at("state", "instance") }) as Error);
});

it("knows the machine, for a folder that does not exist as well", () => {
  expect(machineId()).not.toBe("");
  expect(openInstallation(at("state"), machineId()).writer(at("none"))).toMatch(/^[a-z2-7]{8}$/);
});
