import { expect, it } from "vitest";
import { EXIT, exitCodeOf } from "../../../src/cli/output/exit-code.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";

// A unit is not started again after EXIT.usage: what goes by itself must end in another way.
it.each([
  ["state_locked", EXIT.passing],
  ["address_in_use", EXIT.passing],
  ["address_missing", EXIT.passing],
  ["store_unreachable", EXIT.passing],
  ["ledger_unreachable", EXIT.passing],
  ["disk_full", EXIT.diskFull],
  ["config_invalid", EXIT.usage],
  ["unit_stopped", EXIT.stopped],
  ["unit_slow", EXIT.service],
  ["ledger_damaged", EXIT.usage],
  ["store_newer", EXIT.usage],
  ["store_older", EXIT.usage],
  ["address_refused", EXIT.usage],
])("%s ends a command with %i", (code, status) => {
  expect(exitCodeOf(new KbsyncError("it failed", { code }))).toBe(status);
});
