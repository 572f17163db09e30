import { openCappedPool } from "../../../src/lib/capped/pool.ts";
import type { OddRequest } from "./odd-child.ts";

/** Prints its child's pid and runs until it is ended. With `spin` it exits while its child is in a busy loop, with `spin killed` by SIGKILL. */
const pool = openCappedPool<OddRequest, string, "broken">(
  { module: new URL("odd-child.ts", import.meta.url), failure: (code) => new Error(code) },
  { processes: 1, memoryMb: 256, cpuMs: 20_000, idleMs: 3_600_000 },
);
const [pid] = await pool.ask({ deed: "stay" }, { lane: "backlog" });
process.stdout.write(`${pid}\n`);
if (process.argv[2] === "spin") {
  void pool.ask({ deed: "spin" }, { lane: "backlog" });
  const end = (): void => {
    if (process.argv[3] === "killed") process.kill(process.pid, "SIGKILL");
    else process.exit(0);
  };
  setTimeout(end, 500);
} else setInterval(() => undefined, 1000);
