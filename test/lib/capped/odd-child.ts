import { answerRequests } from "../../../src/lib/capped/child.ts";

/** What the child is to do with a request. */
export interface OddRequest {
  readonly deed: "answer" | "exit" | "exit where used" | "end" | "stay";
}

let served = 0;

answerRequests<OddRequest, string, "broken">(
  async ({ deed }, give) => {
    if (deed === "end") {
      // As before it listens for the signals of a stop.
      process.removeAllListeners("SIGTERM");
      process.kill(process.pid, "SIGTERM");
      await new Promise(() => undefined);
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
