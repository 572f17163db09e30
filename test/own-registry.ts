import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

// Programs that a test file starts find each other, and neither those of other files nor the user's own.
const home = mkdtempSync(join(tmpdir(), "kbsync-registry-"));
delete process.env["XDG_RUNTIME_DIR"];
process.env["XDG_STATE_HOME"] = home;
afterAll(() => rmSync(home, { recursive: true, force: true }));
