import type { LimitState, PaceState } from "../../wire/daemon-status.ts";
import { localTime, thousands } from "./progress.ts";

/** Whether the configuration sends no documents now. */
export function isPaused(state: PaceState): state is LimitState {
  return state.kind === "limited" && state.uploadRate === 0;
}

/** `sync.limits: 256 kB/s, 60 requests a minute until 2026-11-27 18:00`, for a person. */
export function limitWords({ uploadRate, requestsPerMinute, untilMs }: LimitState): string {
  const limits: string[] = [];
  if (uploadRate !== undefined)
    limits.push(uploadRate === 0 ? "no documents are sent" : rateWords(uploadRate));
  if (requestsPerMinute !== undefined) limits.push(`${thousands(requestsPerMinute)} requests a minute`);
  const until = untilMs === undefined ? "" : ` until ${localTime(untilMs).slice(0, -3)}`;
  return `sync.limits: ${limits.join(", ")}${until}`;
}

function rateWords(bytesPerSecond: number): string {
  const [divisor, unit] = bytesPerSecond < 1e6 ? [1e3, "kB/s"] : [1e6, "MB/s"];
  return `${Number((bytesPerSecond / divisor).toPrecision(3))} ${unit}`;
}
