import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { AuthorizationRequest } from "./authorize.ts";
import type { Grant } from "./grants.ts";

/** Lifetime of a code: the client fetches its tokens at once. */
const CODE_MS = 60_000;
/** Codes at a time, each of which needed a valid key; one more drops the oldest. */
const CODES_MAX = 1000;

/** The grant of a code. */
export interface Issued {
  readonly request: AuthorizationRequest;
  readonly grant: Grant;
}

/** Authorization codes in memory, by their hashes. */
export interface Codes {
  issue(issued: Issued): string;
  /** Takes a code. `replayed`: it was taken before; undefined: it is not known, or has expired. */
  take(code: string): { readonly issued: Issued; readonly replayed: boolean } | undefined;
  /** Removes expired codes and returns those that nobody took. */
  sweep(): readonly Issued[];
}

/** Opens the codes. A restart forgets them, and their clients ask again. */
export function openCodes(nowMs: () => number): Codes {
  const codes = new Map<string, { readonly issued: Issued; readonly untilMs: number; taken: boolean }>();
  const sweep = (): readonly Issued[] => {
    const left: Issued[] = [];
    for (const [hash, { issued, untilMs, taken }] of codes) {
      if (untilMs > nowMs() && codes.size <= CODES_MAX) continue;
      codes.delete(hash);
      if (!taken) left.push(issued);
    }
    return left;
  };
  return {
    issue: (issued) => {
      const code = randomBytes(32).toString("base64url");
      codes.set(hashOf(code), { issued, untilMs: nowMs() + CODE_MS, taken: false });
      return code;
    },
    take: (code) => {
      const found = codes.get(hashOf(code));
      if (found === undefined || found.untilMs <= nowMs()) return undefined;
      const { issued, taken: replayed } = found;
      found.taken = true;
      return { issued, replayed };
    },
    sweep,
  };
}

/** Whether a verifier belongs to the challenge of a request (PKCE with S256, RFC 7636). */
export function isVerifierOf(verifier: string, challenge: string): boolean {
  if (!/^[\w.~-]{43,128}$/.test(verifier)) return false;
  const [one, other] = [createHash("sha256").update(verifier).digest(), Buffer.from(challenge, "base64url")];
  return one.length === other.length && timingSafeEqual(one, other);
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
