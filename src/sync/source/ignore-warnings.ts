import { KbsyncError } from "../../lib/failure.ts";
import { type IgnoreProblem, ignoreProblems } from "../rules/ignore-problems.ts";
import type { Rules } from "../rules/rules.ts";

/** The problems of a source's ignore files. */
export interface IgnoreWarnings {
  /**
   * Warns once about each problem that the last scan met, and again if it was gone meanwhile. `whole`: the scan read every
   * ignore file, so that what it did not report is in order.
   */
  update(whole: boolean): void;
  current(): readonly IgnoreProblem[];
}

export function openIgnoreWarnings(rules: Rules, onWarning: (error: Error) => void): IgnoreWarnings {
  let warned = new Map<string, IgnoreProblem>();
  return {
    update: (whole) => {
      const current = new Map(whole ? [] : warned);
      for (const problem of ignoreProblems(rules)) {
        const key = `${problem.file} ${problem.reason}`;
        current.set(key, problem);
        if (!warned.has(key)) onWarning(warningOf(rules.source.absolutePath, problem));
      }
      warned = current;
    },
    current: () => [...warned.values()],
  };
}

function warningOf(root: string, { code, file, path, reason, remedy }: IgnoreProblem): KbsyncError {
  const subject = `${root}/${file}`;
  const folder = path === "" ? root : `${root}/${path}`;
  return new KbsyncError(`${folder}: ${reason}`, { code, subject, retryable: true, hint: remedy });
}
