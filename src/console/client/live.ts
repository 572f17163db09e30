import { signal } from "@preact/signals";
import type { AccountState } from "../../wire/events.ts";
import { ROUTES } from "../../wire/routes.ts";
import { may, me } from "./session.ts";

/** Counts what happened to documents and queues of the account. Pages load again when it grows. */
export const liveTurn = signal(0);
/** The account's figures by the last event; undefined until the first one. */
export const accountState = signal<AccountState | undefined>(undefined);
/** Since when there is no live link; null: there is one, or none was ever wanted. */
export const lostSinceMs = signal<number | null>(null);

/** Least time between two turns, so that a folder that is being sent does not make pages load all the time. */
const TURN_MS = 1000;

/** Follows the events of the account while somebody is signed in. */
export function followEvents(): void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const turn = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      liveTurn.value += 1;
    }, TURN_MS);
  };
  const close = (): void => {
    source?.close();
    source = undefined;
    lostSinceMs.value = null;
  };
  const open = (): void => {
    source = new EventSource(ROUTES.events);
    source.addEventListener("open", () => {
      lostSinceMs.value = null;
    });
    source.addEventListener("state", ({ data }) => {
      accountState.value = JSON.parse(String(data)) as AccountState; // by the contract
      turn();
    });
    source.addEventListener("error", () => {
      lostSinceMs.value ??= Date.now();
      // The browser connects again by itself, but not after a refusal.
      if (source?.readyState === EventSource.CLOSED) setTimeout(reopen, RETRY_MS);
    });
  };
  const reopen = (): void => {
    if (source?.readyState !== EventSource.CLOSED) return;
    source.close();
    source = undefined;
    update();
  };
  /** A tab in the background holds no connection: a browser has few to one address. */
  const update = (): void => {
    const isWanted =
      me.value !== null && me.value !== undefined && may("read") && document.visibilityState === "visible";
    // The next key may be that of another account.
    if (me.value === null) accountState.value = undefined;
    if (isWanted && source === undefined) open();
    else if (!isWanted) close();
  };
  me.subscribe(update);
  document.addEventListener("visibilitychange", update);
}

/** Pause before another try after a refusal, such as that of a service that restarts. */
const RETRY_MS = 3000;
