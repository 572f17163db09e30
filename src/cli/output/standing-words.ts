import type { DaemonStatus } from "../../sync/daemon.ts";
import { outageWords } from "../../sync/remote/pacer.ts";
import { counted, thousands } from "./progress.ts";

/**
 * Summarises a daemon in one line for a service manager: `1,204 files in agreement, 3 waiting`, after the problems that
 * need attention. Pure.
 */
export function standingWords({ service, sources }: Pick<DaemonStatus, "service" | "sources">): string {
  const sum = (of: (source: DaemonStatus["sources"][number]) => number): number =>
    sources.reduce((total, source) => total + of(source), 0);
  // The agreement of a halted source is unknown.
  const agreed = sum((source) => (source.halted ? 0 : source.inAgreement));
  const counts = [`${counted(agreed, "file")} in agreement`];
  const waiting = sum((source) => source.waiting);
  if (waiting > 0) counts.push(`${thousands(waiting)} waiting`);
  const bad = badNews({
    failed: sum((source) => source.failed),
    unreadable: sum((source) => source.unreadable),
    held: sum((source) => (source.halted ? 0 : source.held)),
  });
  const troubles = sources.flatMap(({ path, halted, holdReason, paused }) => {
    if (halted) return [`${path} halted: ${holdReason ?? "nothing is sent"}`];
    return paused ? [`${path} paused`] : [];
  });
  if (service.kind === "waiting") troubles.push(outageWords(service));
  if (service.kind === "key_refused") troubles.push(`the service refuses the key: ${service.reason}`);
  return [...(bad.length === 0 ? [] : [bad.join(", ")]), ...troubles, counts.join(", ")].join("; ");
}

/** Counts that need attention: `2 failed`, `1 unreadable`, `60 deletes held`. */
export function badNews({
  failed,
  unreadable,
  held,
}: Pick<DaemonStatus["sources"][number], "failed" | "unreadable" | "held">): string[] {
  return [
    ...(failed > 0 ? [`${thousands(failed)} failed`] : []),
    ...(unreadable > 0 ? [`${thousands(unreadable)} unreadable`] : []),
    ...(held > 0 ? [`${counted(held, "delete")} held`] : []),
  ];
}
