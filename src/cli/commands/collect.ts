import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** By then the connections of a first pass are closed, and what they held can go too. */
const REST_MS = 10_000;

/**
 * Gives the memory of a first pass back once the daemon has come to rest: V8 collects when something is allocated, and a
 * daemon at rest allocates nothing, so it would keep for months what it needed for a minute. Holds the loop for
 * less than a tenth of a second, once.
 */
export function collectAtRest(): void {
  setTimeout(collect, REST_MS).unref();
}

function collect(): void {
  setFlagsFromString("--expose-gc");
  // With the flag set, a new context has the function; Node.js offers it in no other way after its start.
  const gc: unknown = runInNewContext("gc");
  if (typeof gc === "function") gc({ type: "major", flavor: "last-resort" });
}
