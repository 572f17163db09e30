import type { ProgressSample } from "../../system/progress.ts";
import type { ReachedService } from "../compose/compose.ts";

/**
 * Looks at the service in this process: each look that finds no question open asks one, so that a thread that hangs is a
 * question that stays open. A probe that rejects counts as none. None where the service runs elsewhere.
 */
export function servicePulse({
  probe,
}: Pick<ReachedService, "probe">): () => Readonly<Record<string, ProgressSample>> {
  if (probe === undefined) return () => ({});
  let answers = 0;
  let isOpen = false;
  let isFailing = false;
  const ask = async (): Promise<void> => {
    isOpen = true;
    try {
      await probe();
      answers += 1;
      isFailing = false;
    } catch {
      isFailing = true;
    }
    isOpen = false;
  };
  return () => {
    const sample = { moves: answers, atWork: isOpen || isFailing, waitsForOthers: false };
    if (!isOpen) void ask();
    return { "the service": sample };
  };
}
