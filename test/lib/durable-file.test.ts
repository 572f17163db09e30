import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-durable-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Runs code in a process whose files are limited to 8 blocks of 512 or 1024 bytes. At that limit the system writes a part
 * of a write and refuses the rest, as on a nearly full disk.
 */
function runLimited(code: string): string {
  const { stdout, stderr } = spawnSync(
    "sh",
    ["-c", 'ulimit -f 8; exec "$0" --no-warnings --input-type=module -e "$1"', process.execPath, code],
    { encoding: "utf8" },
  );
  return stdout.trim() || stderr;
}

describe("a file of which only a part fits on the disk", () => {
  it.each([
    ["of a file", "src/lib/durable-file.ts", "writeDurably"],
    ["in the state folder", "src/cli/state/state-folder.ts", "writeStateFile"],
  ])("a partial write %s is an error", (name, module, call) => {
    const code = `
      const { ${call} } = await import(${JSON.stringify(pathToFileURL(module).href)});
      const path = ${JSON.stringify(join(folder, name))};
      const text = "x".repeat(20_000);
      try { ${call}(path, text); console.log("written"); } catch (error) { console.log(error.code ?? error, error.cause?.code ?? ""); }`;
    expect(runLimited(code)).toContain("EFBIG");
  });
});
