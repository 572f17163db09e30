import type { DaemonStatus } from "../../sync/daemon.ts";
import { outageWords } from "../../sync/remote/pacer.ts";
import { isPaused, limitWords } from "./limit-words.ts";
import { counted, thousands } from "./progress.ts";

/**
 * Summarises a daemon in one line for a service manager: `1,204 files in agreement, 3 waiting`, followed by problems that
 * need attention. Pure.
 */
export function standingWords({ service, sources }: Pick<DaemonStatus, "service" | "sources">): string {
  const sum = (of: (source: DaemonStatus["sources"][number]) => number): number =>
    sources.reduce((total, source) => total + of(source), 0);
  // The agreement of a halted source is unknown.
  const agreed = sum((source) => (source.halted ? 0 : source.inAgreement));
  const counts = [`${counted(agreed, "file")} in agreement`];
  const add = (count: number, what: string): void => {
    if (count > 0) counts.push(`${thousands(count)} ${what}`);
  };
  add(
    sum(({ waiting }) => waiting),
    "waiting",
  );
  add(
    sum(({ failed }) => failed),
    "failed",
  );
  add(
    sum(({ unreadable }) => unreadable),
    "unreadable",
  );
  const held = sum((source) => (source.halted ? 0 : source.held));
  if (held > 0) counts.push(`${counted(held, "delete")} held`);
  const troubles = sources.flatMap(({ path, halted, holdReason, paused }) => {
    if (halted) return [`${path} halted: ${holdReason ?? "nothing is sent"}`];
    return paused ? [`${path} paused`] : [];
  });
  if (service.kind === "waiting") troubles.push(outageWords(service));
  if (isPaused(service)) troubles.push(limitWords(service));
  if (service.kind === "key_refused") troubles.push(`the service refuses the key: ${service.reason}`);
  return [counts.join(", "), ...troubles].join("; ");
}
