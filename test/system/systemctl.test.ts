import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listedUnits, openSystemctl, parseProperties, systemdVersion } from "../../src/system/systemctl.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-systemctl-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A program in systemctl's place. */
function program(script: string): string {
  const file = join(folder, "systemctl");
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe("systemctl", () => {
  it("runs systemctl without a terminal, and returns its result", async () => {
    const systemctl = openSystemctl(true, program('echo "$@"; echo no >&2; exit 4'));
    expect(await systemctl("is-active", "kbsync.service")).toEqual({
      code: 4,
      stdout: "--user --no-ask-password --no-pager is-active kbsync.service\n",
      stderr: "no\n",
    });
  });

  it("reports a missing systemctl, and waits for a slow one", async () => {
    await expect(openSystemctl(false, join(folder, "none"))("show")).rejects.toMatchObject({
      code: "no_systemd",
    });
    const slow = openSystemctl(false, program("exec sleep 60"), 50);
    await expect(slow("restart", "kbsync.service")).rejects.toMatchObject({
      code: "unit_slow",
      subject: "kbsync.service",
    });
  });

  it("reports that a person interrupted it", async () => {
    const broken = openSystemctl(false, program("kill -INT $$"));
    await expect(broken("restart", "kbsync.service")).rejects.toMatchObject({
      code: "unit_stopped",
      subject: "kbsync.service",
      message: "systemctl restart kbsync.service was broken off (SIGINT); what it asked for goes on",
    });
  });

  it("returns its version, where there is one", () => {
    expect(systemdVersion(program("echo 'systemd 254 (254.5-1)'; echo +PAM"))).toBe(254);
    expect(systemdVersion(program("echo 'something else'"))).toBeUndefined();
    expect(systemdVersion(join(folder, "none"))).toBeUndefined();
  });
});

it("units are read from a list, properties from what is shown", () => {
  expect(
    listedUnits(
      "kbsync@srv-a.service loaded active running kbsync of /srv/a\n  kbsync@srv-b.service loaded\n\n",
    ),
  ).toEqual(["kbsync@srv-a.service", "kbsync@srv-b.service"]);
  expect(parseProperties("Id=x\nEnvironment=A=b\n\n")).toEqual({ Id: "x", Environment: "A=b" });
});
