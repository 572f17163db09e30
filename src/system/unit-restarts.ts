import { withDirective } from "./unit-text.ts";

/** The first systemd that lets the wait before another start grow; older ones tell an unknown key at each load. */
const STEPS_SINCE = 254;
/**
 * From `RestartSec=` to the longest wait in so many starts. systemd forgets no start after a failure until a person starts
 * the unit (https://github.com/systemd/systemd/issues/43813): those of a year lead to the longest wait as well, so that
 * this is one that matters little: a folder that was replaced outside has the program started again as well.
 */
const RESTART_STEPS = 6;
const RESTART_MAX_DELAY_SECONDS = 15;

/** A unit that is started again ever less often where the systemd of such a version can do that, else as it is. Pure. */
export function withRestartSteps(text: string, systemd: number | undefined): string {
  if (systemd === undefined || systemd < STEPS_SINCE) return text;
  const stepped = withDirective(text, "Service", "RestartSteps", [String(RESTART_STEPS)]);
  return withDirective(stepped, "Service", "RestartMaxDelaySec", [String(RESTART_MAX_DELAY_SECONDS)]);
}
