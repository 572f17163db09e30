import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "../../packaging/program.ts";

/** Packs the repository once for all tests of a run, which find the package by KBSYNC_PACKED; `.ci/run` has done so already. */
export function setup(): (() => void) | undefined {
  if (process.env["KBSYNC_PACKED"] !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "kbsync-packed-"));
  process.env["KBSYNC_PACKED"] = pack(folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
