/** The program's hang-ups (SIGHUP), which Node.js would end it for. */
export interface Hangups {
  /** From here on none ends the program: what comes before somebody listens is kept for them. May be called again. */
  readonly hold: () => void;
  /** Calls the listener at each, and at once where one was kept. Returns what ends that; others are then kept again. */
  readonly listen: (listener: () => void) => () => void;
}

/** Where signals come from. */
export interface SignalSource {
  on(name: "SIGHUP", listener: () => void): unknown;
}

/** Nothing is held yet. */
export function openHangups(source: SignalSource): Hangups {
  let listener: (() => void) | undefined;
  let isHeld = false;
  let isKept = false;
  const onHangup = (): void => {
    if (listener === undefined) isKept = true;
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
      if (isKept) next();
      isKept = false;
      return () => (listener = undefined);
    },
  };
}
