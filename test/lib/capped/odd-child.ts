import { answerRequests } from "../../../src/lib/capped/child.ts";

/** What the child is to do with a request. */
export interface OddRequest {
  readonly deed: "answer" | "exit" | "exit where used" | "end" | "stay" | "hang" | "spin" | "spin on";
}

let served = 0;

answerRequests<OddRequest, string, "broken">(
  async ({ deed }, give, allow) => {
    if (deed === "end") {
      // As before it listens for the signals of a stop.
      process.removeAllListeners("SIGTERM");
      process.kill(process.pid, "SIGTERM");
      await new Promise(() => undefined);
    }
    if (deed === "hang") await new Promise(() => undefined);
    if (deed === "spin") spin(Infinity);
    if (deed === "spin on") {
      allow(60_000);
      // The allowance leaves before the loop is caught.
      await new Promise((resolve) => setImmediate(resolve));
      spin(900);
    }
    if (deed === "stay") {
      // As a library's thread does: something is left that would keep the process for ever.
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

/** Uses so much processor time. */
function spin(cpuMs: number): void {
  const usedMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  const beganMs = usedMs();
  while (usedMs() - beganMs < cpuMs);
}
