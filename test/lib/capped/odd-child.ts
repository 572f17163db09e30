import { answerRequests } from "../../../src/lib/capped/child.ts";

/** How the child treats a request. */
export interface OddRequest {
  readonly deed:
    | "answer"
    | "exit"
    | "exit where used"
    | "end"
    | "be killed"
    | "stay"
    | "hang"
    | "hang where used"
    | "spin"
    | "spin on";
}

let served = 0;

answerRequests<OddRequest, string, "broken">(
  async ({ deed }, give, allow) => {
    if (deed === "end") {
      // The state before it handles stop signals.
      process.removeAllListeners("SIGTERM");
      process.kill(process.pid, "SIGTERM");
      await new Promise(() => undefined);
    }
    if (deed === "be killed") process.kill(process.pid, "SIGKILL");
    if (deed === "hang" || (deed === "hang where used" && served > 0)) await new Promise(() => undefined);
    if (deed === "spin") spin(Infinity);
    if (deed === "spin on") {
      allow(60_000);
      // Lets the allowance leave before the loop blocks.
      await new Promise((resolve) => setImmediate(resolve));
      spin(900);
    }
    if (deed === "stay") {
      // Like a library's thread, this would keep the process alive for ever.
      setInterval(() => undefined, 1000);
      give(String(process.pid));
      return;
    }
    if (deed === "exit" || (deed === "exit where used" && served > 0)) process.exit(3);
    served += 1;
    give(deed);
  },
  () => "broken",
);

/** Spends this much processor time. */
function spin(cpuMs: number): void {
  const usedMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  const beganMs = usedMs();
  while (usedMs() - beganMs < cpuMs);
}
