import { z } from "zod";
import { ROUTES } from "../../../wire/routes.ts";
import { readAnswer, type Later, type RawAnswer } from "./answer.ts";

/** Decides what a 403 is about: the key, or one kind of request that the key may not send. */
export type ForbiddenCheck = ReturnType<typeof openForbiddenCheck>;

/** So long the key counts as valid after an answer to another kind of request: many deletes are forbidden at once. */
const VALID_MS = 10_000;
/** After so many 403 in a row a kind of request is forbidden: a single one may come from a proxy that is starting. */
const FORBIDDEN_ANSWERS = 2;

/**
 * Opens the check. `ask` sends one request, unless all requests wait; `onForbidden` is called once for each kind of request that is
 * forbidden; `elapsed` is a monotonic clock.
 */
export function openForbiddenCheck(
  ask: (path: string, signal: AbortSignal) => Promise<RawAnswer | undefined>,
  onForbidden: (reason: string) => void = () => undefined,
  elapsed: () => number = () => performance.now(),
) {
  const inARow = new Map<string, number>();
  const reported = new Set<string>();
  let validMs = -Infinity;
  let asking: Promise<"valid" | "unknown" | Later> | undefined;

  /**
   * Sends a request of another kind. It names no collection, so it needs no knowledge and reads nothing. Returns what the
   * service says where it answers nobody now.
   */
  const askValid = async (name: string, signal: AbortSignal): Promise<"valid" | "unknown" | Later> => {
    if (elapsed() - validMs < VALID_MS) return "valid";
    try {
      const answer = await ask(name === "list" ? ROUTES.collections : ROUTES.byCollection, signal);
      if (answer === undefined) return "unknown";
      const { status } = answer;
      if (status === 429 || status === 503) {
        const reply = readAnswer(answer, z.unknown(), "address");
        return reply.kind === "later" ? reply : "unknown";
      }
      if (status < 200 || status >= 500 || [401, 403, 408].includes(status)) return "unknown";
    } catch {
      return "unknown"; // No answer: as little is known as before.
    }
    validMs = elapsed();
    return "valid";
  };
  return {
    /** Call it after a 403 to a request of this name. */
    judge: async (name: string, later: Later, signal: AbortSignal): Promise<Later> => {
      const answers = (inARow.get(name) ?? 0) + 1;
      inARow.set(name, answers);
      asking ??= askValid(name, signal).finally(() => (asking = undefined));
      const asked = await asking;
      if (asked === "unknown") return later;
      // The delay that it asks for counts for all requests.
      if (asked !== "valid") return { ...asked, acted: later.acted };
      const isForbidden = answers >= FORBIDDEN_ANSWERS;
      const reason = `the service forbids ${name} requests (403): ${later.reason}`;
      if (isForbidden && !reported.has(name)) onForbidden(reason);
      if (isForbidden) reported.add(name);
      return { ...later, blame: "request", ...(isForbidden ? { reason } : { isForbidden }) };
    },
    /** Call it after each other answer to a request of this name. */
    answered: (name: string): void => void inARow.delete(name),
  };
}
