import { CLOCK_SLACK_MS } from "../../plan/settlement.ts";
import type { CreateIntent } from "../intents/creates.ts";
import type { Meta } from "../database/meta.ts";

/** How old the ledger is, and when it was last audited. */
export interface LedgerAge {
  /** When this ledger began, by the service's clock. `offsetMs`: see `forgottenThereMs`. */
  bornThereMs(offsetMs: number): number;
  /**
   * When this ledger began, or last turned out to be old, by the service's clock. Until then another ledger may have
   * made resources. `offsetMs` is that clock minus ours now. It counts where no answer supplied it earlier.
   */
  forgottenThereMs(offsetMs: number): number;
  /** Reports whether a create is from before that time, even if our clock was set in between. */
  isForgotten(create: Pick<CreateIntent, "atMs" | "clockOffsetMs">): boolean;
  setForgottenMs(atMs: number): void;
  /**
   * Records the service's clock minus ours, as an answer shows it. The first one since the ledger began, and since
   * `setForgottenMs`, counts, because our clock may be set later.
   */
  noteOffset(offsetMs: number): void;
  auditedMs(): number | undefined;
  setAuditedMs(atMs: number): void;
}

/** Reads and records the age of a ledger among its named values. */
export function ledgerAge(meta: Meta): LedgerAge {
  const bornMs = (): number => meta.number("born_ms") ?? 0;
  const forgottenMs = (): number => meta.number("forgotten_ms") ?? bornMs();
  const setForgottenMs = (atMs: number): void => {
    meta.set("forgotten_ms", String(Math.floor(atMs)));
    meta.remove("forgotten_offset_ms");
  };

  return {
    bornThereMs: (offsetMs) => bornMs() + (meta.number("born_offset_ms") ?? offsetMs),
    isForgotten: ({ atMs, clockOffsetMs }) => {
      const stepMs = Number(meta.get("forgotten_offset_ms") ?? clockOffsetMs) - (clockOffsetMs ?? 0);
      const isSet = clockOffsetMs !== null && Math.abs(stepMs) > CLOCK_SLACK_MS;
      return atMs - (isSet ? stepMs : 0) <= forgottenMs();
    },
    forgottenThereMs: (offsetMs) => forgottenMs() + (meta.number("forgotten_offset_ms") ?? offsetMs),
    setForgottenMs,
    noteOffset: (offsetMs) => {
      for (const name of ["born_offset_ms", "forgotten_offset_ms"])
        if (meta.get(name) === undefined) meta.set(name, String(offsetMs));
    },
    auditedMs: () => meta.number("audited_ms"),
    setAuditedMs: (atMs) => meta.set("audited_ms", String(atMs)),
  };
}
