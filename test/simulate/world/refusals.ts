import type { Daemon } from "../../../src/sync/daemon.ts";
import type { Clock } from "../virtual/clock.ts";
import type { Judge } from "./judge.ts";
import type { Network } from "./network.ts";
import type { Answer } from "./service.ts";

/** A single refusal of the key may delay other work by this much. */
const DELAY_MAX_MS = 5000;

export interface RefusalOptions {
  readonly clock: Clock;
  readonly network: Pick<Network, "met" | "isDown">;
  readonly judge: () => Pick<Judge, "fail">;
  /** The daemon that runs; undefined where none does. */
  readonly running: () => Daemon | undefined;
}

/**
 * Watches answers as they come: a single 401 or 403, such as a proxy gives that is just starting, must not hold up everything
 * else. The service may say so of one request in a row; whatever else goes wrong meanwhile may have closed the gate, and
 * then nothing is judged.
 */
export function openRefusalWatch({
  clock,
  network,
  judge,
  running,
}: RefusalOptions): (answer: Answer) => void {
  let failures = 0;
  return ({ status }) => {
    if (status >= 400) failures += 1;
    const daemon = running();
    if ((status !== 401 && status !== 403) || daemon?.pulse().service !== "open") return;
    const [failuresThen, metThen] = [failures, network.met()];
    const setMs = clock.wallMs() - clock.nowMs();
    clock.at(clock.nowMs() + DELAY_MAX_MS, { alive: true }, () => {
      const isOther = failures !== failuresThen || network.met() !== metThen || network.isDown();
      // When the clock was set, the daemon's times are others.
      const isSet = Math.abs(clock.wallMs() - clock.nowMs() - setMs) > 1;
      if (isOther || isSet || running() !== daemon) return;
      const { service } = daemon.status();
      if (service.kind === "open" || service.kind === "limited" || service.untilMs <= clock.wallMs()) return;
      // What left before the refusal may have got no answer since, and closed the gate once more.
      if (service.reason !== `simulated ${status}`) return;
      const restS = ((service.untilMs - clock.wallMs()) / 1000).toFixed(1);
      judge().fail("sulking", `a single ${status} delays all requests for another ${restS} s`);
    });
  };
}
