import { z } from "zod";
import { TIERS } from "./constants.ts";

/** Smallest and largest `chunkSize` in characters (UTF-16 code units); the specification leaves the range open. */
export const CHUNK_CHARS_MIN = 1;
export const CHUNK_CHARS_MAX = 4000;
export const CHUNK_CHARS_DEFAULT = 1000;
export const OVERLAP_CHARS_DEFAULT = 100;

/** Id of a resource, a collection, a key or another object of the service. */
export const Id = z
  .string()
  .regex(/^[0-9a-f]{24}$/)
  .meta({ id: "Id" });

/** A time in an answer. */
export const Time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ id: "Time", format: "date-time", description: "ISO 8601 in UTC with milliseconds." });

/** A number of items. */
export const Count = z.int().min(0);

/** A range of lines or pages. */
export const NumberRange = z
  .object({ first: z.int().min(1), last: z.int().min(1) })
  .meta({ id: "NumberRange", description: "From 1, both included." });
export type NumberRange = z.infer<typeof NumberRange>;

/** The chunking strategies, by their wire values. */
export const Strategy = z.enum(["recursive", "semantic", "agentic"]);
export type Strategy = z.infer<typeof Strategy>;

/** The retrieval tiers: the wire values of `collection_details`, each naming one collection of an account. */
export const Tier = z.enum(TIERS);
export type Tier = z.infer<typeof Tier>;

/** Complete chunking settings of a resource. Invariant: 0 ≤ chunkOverlap < chunkSize ≤ 4000. */
export interface Settings {
  readonly strategy: Strategy;
  readonly chunkSize: number;
  readonly chunkOverlap: number;
}

export const DEFAULT_SETTINGS: Settings = {
  strategy: "recursive",
  chunkSize: CHUNK_CHARS_DEFAULT,
  chunkOverlap: OVERLAP_CHARS_DEFAULT,
};

/** An integer, or a string of digits, because existing user interfaces send form fields as text. */
export const WireInteger = z.union([
  z.int(),
  z
    .string()
    .regex(/^\d{1,9}$/, "expected an integer")
    .transform(Number),
]);

/** Adds the default overlap to chunking settings. It shrinks with a small chunkSize, so that `{chunkSize: 50}` alone is valid. */
export function completeSettings<T extends { chunkSize: number; chunkOverlap?: number | undefined }>(
  settings: T,
): T & { chunkOverlap: number } {
  const { chunkSize, chunkOverlap = Math.min(OVERLAP_CHARS_DEFAULT, Math.floor(chunkSize / 10)) } = settings;
  return { ...settings, chunkOverlap };
}
