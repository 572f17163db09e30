/**
 * A daemon in a process of its own that kills itself, as kill -9 would, at the nth time of a named step. Argument: the
 * `FatalOrders` as JSON. Ends with 0 when it comes to the end of its pass instead, or on SIGTERM.
 */
import { openOrdered, type Orders, runDaemon } from "./live-daemon.ts";

/** What the process is to do, and where to die. */
export interface FatalOrders extends Orders {
  readonly step: string;
  readonly nth: number;
}

const orders = JSON.parse(process.argv[2] ?? "") as FatalOrders; // our own test wrote them
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
let count = 0;
const daemon = openOrdered(orders, (name) => {
  if (name !== orders.step) return;
  count += 1;
  // The signal is delivered before the call returns: nothing of this process runs after it.
  if (count === orders.nth) process.kill(process.pid, "SIGKILL");
});
await runDaemon(daemon, orders, stop.signal);
