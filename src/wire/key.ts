import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Id, Time, WireInteger } from "./primitives.ts";

/** Longest name of a key in characters. */
const KEY_NAME_CHARS_MAX = 200;
/** How long the old key works after a rotation by default: a day to distribute the new one. */
export const OVERLAP_SECONDS_DEFAULT = 24 * 60 * 60;
/** Longest overlap of a rotation; use two keys for more. */
const OVERLAP_SECONDS_MAX = 30 * 24 * 60 * 60;

/** Permissions of a key; `admin` includes all. */
export const Scope = z.enum(["read", "write", "chat", "admin"]).meta({ id: "Scope" });
export type Scope = z.infer<typeof Scope>;

const name = z
  .string()
  .min(1)
  .max(KEY_NAME_CHARS_MAX)
  .refine((text) => text.trim() !== "", { message: "expected a text that is not blank" });
/** At least one, without duplicates: a key without scopes is a mistake. */
const scopes = z
  .array(Scope)
  .min(1)
  .max(20)
  .transform((given) => Scope.options.filter((scope) => given.includes(scope)));
/** ISO 8601 with the zone. */
const expiresAt = z.iso
  .datetime({ offset: true, error: "expected an ISO 8601 time with its zone" })
  .nullable();

/** Body of `POST /v1/keys` (an addition). `expiresAt` null or absent: never. */
export const KeyBody = z.object({ name, scopes, expiresAt: expiresAt.optional() }).meta({ id: "KeyBody" });
export type KeyBody = z.infer<typeof KeyBody>;

/** Body of `POST /v1/keys/<id>/rotate` (an addition). Without `expiresAt` the new key gets the old one's lifetime. */
export const RotateBody = z
  .object({
    overlapSeconds: WireInteger.pipe(z.int().min(0).max(OVERLAP_SECONDS_MAX)).default(
      OVERLAP_SECONDS_DEFAULT,
    ),
    expiresAt: expiresAt.optional(),
  })
  .meta({ id: "KeyRotateBody" });
export type RotateBody = z.infer<typeof RotateBody>;

/** A key in an answer, without the secret. */
export const KeyRecordAnswer = z
  .object({
    _id: Id,
    name: z.string(),
    hint: z.string(),
    scopes: z.array(Scope),
    createdAt: Time,
    expiresAt: Time.nullable().describe("Null: never."),
    revokedAt: Time.nullable(),
    state: z.enum(["valid", "expired", "revoked"]),
  })
  .meta({ id: "Key" });
export type KeyRecordAnswer = z.infer<typeof KeyRecordAnswer>;

/** Answer of create and rotate, the only ones with the secret. `previous` is the rotated key. */
export const NewKeyAnswer = answerOf(
  KeyRecordAnswer.extend({ key: z.string(), previous: KeyRecordAnswer.optional() }).meta({ id: "NewKey" }),
).meta({ id: "NewKeyAnswer" });
export type NewKeyAnswer = z.infer<typeof NewKeyAnswer>;

/** Answer of revoke. */
export const KeyAnswer = answerOf(KeyRecordAnswer).meta({ id: "KeyAnswer" });
export type KeyAnswer = z.infer<typeof KeyAnswer>;

/** Answer of `GET /v1/keys`: all keys of the account, oldest first. */
export const KeysAnswer = answerOf(z.object({ keys: z.array(KeyRecordAnswer) })).meta({ id: "KeysAnswer" });
export type KeysAnswer = z.infer<typeof KeysAnswer>;
