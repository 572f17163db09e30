import { readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";

const LOWERED = `
  import(${JSON.stringify(new URL("../../src/lib/thread-priority.ts", import.meta.url).href)}).then(({ lowerThreadPriority }) => {
    lowerThreadPriority();
    require("node:worker_threads").parentPort.postMessage(require("node:fs").readlinkSync("/proc/thread-self"));
    setInterval(() => undefined, 1000);
  });
`;

describe.runIf(process.platform === "linux")("the priority of a thread", () => {
  it("the priority of a thread is lower than that of its process, which keeps its own", async () => {
    const before = getPriority();
    const thread = new Worker(LOWERED, { eval: true });
    try {
      const self = await new Promise<string>((resolve, reject) => {
        thread.once("message", resolve).once("error", reject);
      });
      // The fields after the name, which may contain spaces, begin with the state, field 3; the niceness is field 19 (proc(5)).
      const fields = readFileSync(`/proc/${self}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      expect(Number(fields[19 - 3])).toBe(Math.min(before + 5, 19));
      expect(getPriority()).toBe(before);
    } finally {
      await thread.terminate();
    }
  });
});
