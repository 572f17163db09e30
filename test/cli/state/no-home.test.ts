import { spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
/** A user that the system knows nothing of, such as a unit's own user without libnss-systemd. */
const NOBODYS_UID = 61_184;
const why = whyNot();

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can run a program as another user";
  for (let folder = main; folder !== "/"; folder = dirname(folder))
    if ((statSync(folder).mode & 0o004) === 0) return `${folder} is closed to other users`;
  accessSync(process.execPath, constants.X_OK);
  return undefined;
}

describe.skipIf(why !== undefined)(
  `a user without a home${why === undefined ? "" : `: skipped, ${why}`}`,
  () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "kbsync-homeless-"));
      chmodSync(folder, 0o777);
    });
    afterEach(() => rmSync(folder, { recursive: true }));
    const run = (env: Record<string, string>, ...args: readonly string[]) =>
      spawnSync(process.execPath, ["--no-warnings", main, ...args], {
        cwd: folder,
        uid: NOBODYS_UID,
        gid: NOBODYS_UID,
        env,
        encoding: "utf8",
      });

    it.each<[string, (at: string) => Record<string, string>]>([
      ["with the folders that a unit gives it", (at) => ({ CACHE_DIRECTORY: at, STATE_DIRECTORY: at })],
      ["with nothing at all", () => ({})],
    ])("%s can run the program", (_name, env) => {
      const { status, stdout, stderr } = run(env(folder), "--version");
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    });

    it("asks a user without a home to name a state folder", () => {
      const { status, stderr } = run({}, "status");
      expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining("--state-dir") });
    });
  },
);
