import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Scope } from "./key.ts";
import { Id, Time } from "./primitives.ts";

/** Body of `POST /console/session` (an addition): a key, or the token of a link. */
export const SessionBody = z
  .object({ key: z.string().min(1).max(4096).optional(), link: z.string().min(1).max(100).optional() })
  .meta({ id: "SessionBody" });
export type SessionBody = z.infer<typeof SessionBody>;

/** The caller's key and account. */
export const Me = z
  .object({
    accountId: Id,
    key: z.object({
      _id: Id,
      name: z.string(),
      hint: z.string(),
      scopes: z.array(Scope),
      expiresAt: Time.nullable().describe("Null: never."),
    }),
    daemon: z.boolean().describe("Whether the key may use /v1/daemon here."),
  })
  .meta({ id: "Me" });
export type Me = z.infer<typeof Me>;

/** Answer of `GET /v1/me` and of signing in to the console. */
export const MeAnswer = answerOf(Me).meta({ id: "MeAnswer" });
export type MeAnswer = z.infer<typeof MeAnswer>;

/** Answer of signing out. */
export const SignedOutAnswer = answerOf(z.object({})).meta({ id: "SignedOutAnswer" });

/** Body of `POST /console/links` (an addition). */
export const LinkBody = z
  .object({
    lifeSeconds: z.int().min(1).max(600).default(60).describe("How long the link works."),
  })
  .meta({ id: "ConsoleLinkBody" });

/** Answer of `POST /console/links`. */
export const LinkAnswer = answerOf(
  z
    .object({
      token: z.string().describe("Opens one session: `/#link=<token>` in a browser."),
      expiresAt: Time,
    })
    .meta({ id: "ConsoleLink" }),
).meta({ id: "ConsoleLinkAnswer" });
export type LinkAnswer = z.infer<typeof LinkAnswer>;
