import { hash, randomBytes } from "node:crypto";
import { Refusal } from "../resources/refusal.ts";
import type { SessionRecord } from "../store/accounts.ts";
import type { Records } from "../store/records.ts";

/** How long a session lives without a request: a working day. */
const SESSION_IDLE_MS = 12 * 3_600_000;
/** How much of its life a session has lost before it is extended, so that few requests cause a write. */
const EXTEND_AFTER_MS = 300_000;
/** Longer than any token; longer values are not hashed. */
const TOKEN_CHARS_MAX = 100;

/** A token that is shown once. */
export interface IssuedToken {
  readonly token: string;
  readonly expiresMs: number;
}

/** Sessions of the console. Each stands for a key, and its bearer may do what the key may. */
export interface Sessions {
  /** Opens a session for a key by its hash. */
  open(keySha256: string): Promise<IssuedToken>;
  /** Issues a link, which opens one session within `lifeMs`. */
  issueLink(keySha256: string, lifeMs: number): Promise<IssuedToken>;
  /** Returns the hash of the link's key. Throws `sign_in_link_ended`, also for a link that was used. */
  redeemLink(token: string): Promise<string>;
  /** Returns the hash of the session's key, and extends the session. Throws `session_ended`. */
  keyOf(token: string): Promise<string>;
  /** Ends a session. Does nothing for an unknown one. */
  end(token: string): Promise<void>;
}

/** Random bytes of a token. A link lives for minutes and is used once; shorter, it fits a terminal of 80 columns. */
const TOKEN_BYTES: Readonly<Record<SessionRecord["kind"], number>> = { session: 32, link: 18 };

/** Opens the sessions of a store. The caller checks the keys. */
export function openSessions(
  records: Pick<Records, "putSession" | "session" | "takeSession">,
  nowMs: () => number,
): Sessions {
  const issue = async (
    keySha256: string,
    kind: SessionRecord["kind"],
    lifeMs: number,
  ): Promise<IssuedToken> => {
    const token = randomBytes(TOKEN_BYTES[kind]).toString("base64url");
    const expiresMs = nowMs() + lifeMs;
    await records.putSession({ sha256: hashToken(token), keySha256, kind, expiresMs }, nowMs());
    return { token, expiresMs };
  };
  const isLive = (found: SessionRecord | undefined, kind: SessionRecord["kind"]): found is SessionRecord =>
    found !== undefined && found.kind === kind && found.expiresMs > nowMs();

  return {
    open: (keySha256) => issue(keySha256, "session", SESSION_IDLE_MS),
    issueLink: (keySha256, lifeMs) => issue(keySha256, "link", lifeMs),
    redeemLink: async (token) => {
      const sha256 = hashToken(token);
      // Read first: a session's token is no link, and must survive the attempt.
      const isLink = isLive(await records.session(sha256), "link");
      const taken = isLink ? await records.takeSession(sha256) : undefined;
      if (taken !== undefined) return taken.keySha256;
      throw new Refusal("sign_in_link_ended", "This link was used before, or its time is over.", {
        hint: "`kbsync key link` opens a new one.",
      });
    },
    keyOf: async (token) => {
      const found = token.length > TOKEN_CHARS_MAX ? undefined : await records.session(hashToken(token));
      if (!isLive(found, "session")) throw sessionEnded();
      const expiresMs = nowMs() + SESSION_IDLE_MS;
      if (expiresMs - found.expiresMs >= EXTEND_AFTER_MS)
        await records.putSession({ ...found, expiresMs }, nowMs());
      return found.keySha256;
    },
    end: async (token) => {
      await records.takeSession(hashToken(token));
    },
  };
}

/** The refusal of a session that is unknown, idle for too long, or whose key ended. */
export function sessionEnded(cause?: unknown): Refusal {
  return new Refusal("session_ended", "Your session has ended.", { hint: "Sign in again.", cause });
}

/** SHA-256 in hex. A token's 256 random bits make salt and stretching unnecessary. */
function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}
