import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, vi, type ProvidedContext } from "vitest";
import { isAlive } from "../../../../src/lib/process-alive.ts";
import { isSkipped } from "./databases.ts";

function programsOf(server: ProvidedContext["postgres"]): string {
  if ("missing" in server) throw new Error(server.missing);
  return server.programs;
}

const module = fileURLToPath(new URL("cluster.ts", import.meta.url));

describe.skipIf(isSkipped())("a server of the tests", () => {
  it("a server of the tests ends, and removes its files, when the process that started it is killed", async () => {
    const programs = programsOf(inject("postgres"));
    const script = `
      import { startCluster } from ${JSON.stringify(module)};
      console.log(startCluster(${JSON.stringify(programs)}).url("postgres"));
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const folder = decodeURIComponent(new URL(line.toString().trim()).hostname);
    const pid = Number(readFileSync(`${folder}/data/postmaster.pid`, "utf8").split("\n")[0]);
    expect(isAlive(pid)).toBe(true);
    child.kill("SIGKILL");
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 20_000);
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), 20_000);
  });
});
