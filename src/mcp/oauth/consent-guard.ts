import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { AuthorizationRequest } from "./authorize.ts";

/** Time that a person has for the consent page. */
const CONSENT_MS = 10 * 60_000;
/** Failed sign-ins a minute, of all people together: behind a proxy their addresses are not known. */
const FAILURES_MAX = 20;
const MINUTE_MS = 60_000;

/** The server's signatures under requests that are shown to people. */
export interface Signatures {
  sign(request: AuthorizationRequest): string;
  /** Undefined for what this server did not sign, and after the time for it. */
  verify(signed: string): AuthorizationRequest | undefined;
}

/** A count of failed sign-ins. */
export interface Failures {
  /** Counts an attempt as failed. False: there were too many in this minute. */
  begin(): boolean;
  /** Takes the last attempt back. */
  succeed(): void;
}

/** Opens signatures, which make it unnecessary to keep the requests. A restart makes them invalid. */
export function openSignatures(nowMs: () => number): Signatures {
  const secret = randomBytes(32);
  const codeFor = (text: string): Buffer => createHmac("sha256", secret).update(text).digest();
  return {
    sign: (request: AuthorizationRequest): string => {
      const text = JSON.stringify({ request, untilMs: nowMs() + CONSENT_MS });
      return `${Buffer.from(text).toString("base64url")}.${codeFor(text).toString("base64url")}`;
    },
    verify: (signed: string): AuthorizationRequest | undefined => {
      const [text = "", code = ""] = signed.split(".").map((part) => Buffer.from(part, "base64url"));
      const right = codeFor(text.toString());
      if (code.length !== right.length || !timingSafeEqual(Buffer.from(code), right)) return undefined;
      const { request, untilMs } = Signed.parse(JSON.parse(text.toString()));
      return untilMs > nowMs() ? request : undefined;
    },
  };
}

const Signed = z.object({ request: AuthorizationRequest, untilMs: z.number() });

/** Opens the count of failed sign-ins. */
export function openFailures(nowMs: () => number): Failures {
  let sinceMs = 0;
  let count = 0;
  return {
    begin: (): boolean => {
      if (Math.abs(nowMs() - sinceMs) >= MINUTE_MS) [sinceMs, count] = [nowMs(), 0];
      count += 1;
      return count <= FAILURES_MAX;
    },
    succeed: (): void => {
      count = Math.max(0, count - 1);
    },
  };
}
