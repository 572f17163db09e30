import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

/** The data that a page has loaded so far. */
export interface Loaded<T> {
  /** The last answer, which stays while another one is on its way, and when that fails. */
  readonly value: T | undefined;
  /** Unix time of the last answer. */
  readonly atMs: number | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Loads again now. */
  readonly reload: () => void;
}

/**
 * Loads a value, again when `key` changes, and every `everyMs` while the page is visible, and when `live` changes. The value of another key is dropped.
 */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
  live?: ReadonlySignal<number>,
): Loaded<T> {
  type State = Omit<Loaded<T>, "reload"> & { readonly key: string };
  const empty: State = { key, value: undefined, atMs: undefined, error: undefined, isLoading: true };
  const [state, setState] = useState<State>(empty);
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const liveTurn = live?.value;
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (): Promise<void> => {
      setState((before) => (before.key === key ? { ...before, isLoading: true } : { ...empty }));
      try {
        const value = await latest.current(abort.signal);
        if (abort.signal.aborted) return;
        setState({ key, value, atMs: Date.now(), error: undefined, isLoading: false });
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...before, key, error, isLoading: false }));
      }
      if (everyMs !== undefined) timer = setTimeout(next, everyMs);
    };
    // A page in the background asks for nothing.
    const next = (): void => {
      if (document.visibilityState === "visible") void run();
      else document.addEventListener("visibilitychange", next, { once: true });
    };
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", next);
    };
  }, [key, turn, everyMs, liveTurn]);
  const shown = state.key === key ? state : empty;
  return { ...shown, reload: () => setTurn((before) => before + 1) };
}

/** The time, which moves on every `everyMs`. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
