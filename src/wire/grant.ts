import { z } from "zod";
import { answerOf } from "./answers.ts";
import { KEY_NAME_CHARS_MAX } from "./key.ts";
import { Id, Time } from "./primitives.ts";

/** Body of `POST /v1/grants` (an addition). */
export const GrantBody = z
  .object({
    name: z
      .string()
      .min(1)
      .max(KEY_NAME_CHARS_MAX)
      .refine((text) => text.trim() !== "", { message: "expected a text that is not blank" })
      .describe("Of the client, for lists of keys."),
  })
  .meta({ id: "GrantBody" });
export type GrantBody = z.infer<typeof GrantBody>;

/** Body of `POST /v1/grants/refresh` (an addition). */
export const GrantRefreshBody = z
  .object({ refreshToken: z.string().min(1).max(200) })
  .meta({ id: "GrantRefreshBody" });
export type GrantRefreshBody = z.infer<typeof GrantRefreshBody>;

/** A grant with its secrets, which are shown only here. */
export const GrantAnswer = answerOf(
  z
    .object({
      _id: Id,
      key: z.string().describe("With the scope read."),
      keyExpiresAt: Time,
      refreshToken: z.string().describe("For the next key, once."),
      expiresAt: Time.describe("End of the grant, unless it is refreshed before."),
    })
    .meta({ id: "Grant" }),
).meta({ id: "GrantAnswer" });
export type GrantAnswer = z.infer<typeof GrantAnswer>;

/** Answer of `DELETE /v1/grants`. */
export const GrantEndAnswer = answerOf(z.object({ _id: Id })).meta({ id: "GrantEndAnswer" });
