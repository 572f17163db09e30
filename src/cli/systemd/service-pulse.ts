import type { ProgressSample } from "../../system/progress.ts";
import type { ReachedService } from "../compose/embedded-service.ts";

/**
 * Samples the service in this process. Each sample starts a probe unless one is in flight, so a thread that hangs shows as
 * a probe without an answer. A failed probe counts as no progress. Empty for a remote service.
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
