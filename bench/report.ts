import { readFileSync } from "node:fs";

/** The middle value; of an even number the lower of the two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value at a share of the sorted list, nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Highest resident memory of a process so far in MB (VmHWM); Linux only. */
export function peakMb(pid: number | undefined): number {
  return statusMb(pid, "VmHWM");
}

/** Resident memory of a process now in MB. */
export function residentMb(pid: number | undefined): number {
  return statusMb(pid, "VmRSS");
}

function statusMb(pid: number | undefined, field: string): number {
  const line = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1] ?? Number.NaN) / 1024;
}

/** Prints a Markdown table, as it goes into docs/BENCHMARKS.md. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
  process.stdout.write(line(head) + line(head.map(() => "---")) + rows.map(line).join(""));
}
