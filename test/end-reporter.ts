import { readdirSync, readFileSync } from "node:fs";
import type { Reporter } from "vitest/node";

/** How long the runner may take to end after its last test: workers are killed half a second after they were asked to end. */
const END_MS = 60_000;

/**
 * Ends a run whose tests have all ended and whose runner has not. It waits without a bound for the output of each worker
 * to close, and any program that a test started and left behind keeps that output open. Says which programs are left, so
 * that the test can be mended; what the tests found stays the outcome.
 */
export class EndReporter implements Reporter {
  onTestRunEnd(_modules: unknown, _errors: unknown, reason: "passed" | "interrupted" | "failed"): void {
    setTimeout(() => {
      const left = processesBeside().map((line) => `\n  ${line}`);
      process.stderr.write(
        `\nThe tests ended ${END_MS / 1000} s ago, and the runner still waits. Programs beside it:${left.join("")}\n`,
      );
      process.exit(reason === "passed" ? 0 : 1);
    }, END_MS).unref();
  }
}

interface Process {
  readonly pid: string;
  readonly command: string;
  readonly parent: string;
  readonly group: string;
}

/** `PID COMMAND` of each process of this one's group, without those that started it (Linux). */
function processesBeside(): string[] {
  const all = new Map<string, Process>();
  for (const pid of read(() => readdirSync("/proc"), [])) {
    const found = /^\d+$/.test(pid) ? read(() => readProcess(pid), undefined) : undefined;
    if (found !== undefined) all.set(pid, found);
  }
  const self = all.get(String(process.pid));
  const above = new Set<string>();
  for (let at = self; at !== undefined && !above.has(at.pid); at = all.get(at.parent)) above.add(at.pid);
  return [...all.values()]
    .filter(({ pid, group }) => group === self?.group && !above.has(pid))
    .map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
}

function readProcess(pid: string): Process {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in brackets, may hold anything, brackets and spaces too.
  const [, parent = "", group = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    pid,
    parent,
    group,
    command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "),
  };
}

/** Processes end while they are read. */
function read<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
