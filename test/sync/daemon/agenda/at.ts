import { type Agenda, openAgenda } from "../../../../src/sync/daemon/agenda/agenda.ts";

/** An agenda without a timer. `at` sets its clock. */
export type TimedAgenda = Agenda & { at(nowMs: number): Agenda };

/** Opens one at the time 0. */
export function openAt(settleMs: number): TimedAgenda {
  let clockMs = 0;
  const agenda = openAgenda({ settleMs, now: () => clockMs, once: false });
  agenda.stop();
  return {
    ...agenda,
    at: (nowMs) => {
      clockMs = nowMs;
      return agenda;
    },
  };
}
