import { withDirective } from "./unit-text.ts";

/** First systemd version with growing restart delays; older ones warn about the unknown key at each load. */
const STEPS_SINCE = 254;
/**
 * Number of restarts over which the delay grows from `RestartSec=` to the longest. systemd counts restarts until a person
 * starts the unit (https://github.com/systemd/systemd/issues/43813), so restarts spread over a year reach the longest
 * delay too. It is short for that reason: the program also restarts when a folder was replaced outside.
 */
const RESTART_STEPS = 6;
const RESTART_MAX_DELAY_SECONDS = 15;

/** Adds growing restart delays to a unit where this systemd version supports them. Pure. */
export function withRestartSteps(text: string, systemd: number | undefined): string {
  if (systemd === undefined || systemd < STEPS_SINCE) return text;
  const stepped = withDirective(text, "Service", "RestartSteps", [String(RESTART_STEPS)]);
  return withDirective(stepped, "Service", "RestartMaxDelaySec", [String(RESTART_MAX_DELAY_SECONDS)]);
}
