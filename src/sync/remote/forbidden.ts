import { ROUTES } from "../../wire/routes.ts";
import type { Later, RawAnswer } from "./answer.ts";

/** Decides what a 403 is about: the key, or one kind of request that the key may not send. */
export interface ForbiddenCheck {
  /** Call it after a 403 to a request of this name. */
  judge(name: string, later: Later, signal: AbortSignal): Promise<Later>;
  /** Call it after each other answer to a request of this name. */
  answered(name: string): void;
}

/** So long the key counts as valid after an answer to another kind of request: many deletes are forbidden at once. */
const VALID_MS = 10_000;
/** After so many 403 in a row a kind of request is forbidden: a single one may come from a proxy that is starting. */
const FORBIDDEN_ANSWERS = 2;

/**
 * Opens the check. `ask` sends one request; `onForbidden` is called once for each kind of request that is forbidden; `elapsed`
 * is a monotonic clock.
 */
export function openForbiddenCheck(
  ask: (path: string, signal: AbortSignal) => Promise<Pick<RawAnswer, "status">>,
  onForbidden: (reason: string) => void = () => undefined,
  elapsed: () => number = () => performance.now(),
): ForbiddenCheck {
  const inARow = new Map<string, number>();
  const reported = new Set<string>();
  let validMs = -Infinity;
  let asking: Promise<boolean> | undefined;

  /** Sends a request of another kind. It names no collection, so it needs no knowledge and reads nothing. */
  const isValid = async (name: string, signal: AbortSignal): Promise<boolean> => {
    if (elapsed() - validMs < VALID_MS) return true;
    try {
      const { status } = await ask(name === "list" ? ROUTES.collections : ROUTES.byCollection, signal);
      if (status < 200 || status >= 500 || [401, 403, 408, 429].includes(status)) return false;
    } catch {
      return false; // No answer: as little is known as before.
    }
    validMs = elapsed();
    return true;
  };
  return {
    judge: async (name, later, signal) => {
      const answers = (inARow.get(name) ?? 0) + 1;
      inARow.set(name, answers);
      asking ??= isValid(name, signal).finally(() => (asking = undefined));
      if (!(await asking)) return later;
      const isForbidden = answers >= FORBIDDEN_ANSWERS;
      const reason = `the service forbids ${name} requests (403): ${later.reason}`;
      if (isForbidden && !reported.has(name)) onForbidden(reason);
      if (isForbidden) reported.add(name);
      return { ...later, blame: "request", ...(isForbidden ? { reason } : { isForbidden }) };
    },
    answered: (name) => inARow.delete(name),
  };
}
