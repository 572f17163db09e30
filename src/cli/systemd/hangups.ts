/** Hang-up signals (SIGHUP), which by default end a Node.js process. */
export interface Hangups {
  /** Starts catching signals. One that arrives without a listener is stored for the next one. Idempotent. */
  readonly hold: () => void;
  /** Calls the listener at each signal, and at once for a stored one. Returns a function that removes the listener. */
  readonly listen: (listener: () => void) => () => void;
}

/** The source of signals, such as `process`. */
export interface SignalSource {
  on(name: "SIGHUP", listener: () => void): unknown;
}

/** Opens the signals without catching them yet. */
export function openHangups(source: SignalSource): Hangups {
  let listener: (() => void) | undefined;
  let isHeld = false;
  let isStored = false;
  const onHangup = (): void => {
    if (listener === undefined) isStored = true;
    else listener();
  };
  const hold = (): void => {
    if (!isHeld) source.on("SIGHUP", onHangup);
    isHeld = true;
  };
  return {
    hold,
    listen: (next) => {
      hold();
      listener = next;
      if (isStored) next();
      isStored = false;
      return () => (listener = undefined);
    },
  };
}
