import { z } from "zod";

/** Body of every error response. `code` is stable and for programs, `message` is for people. */
export const Failure = z.object({
  success: z.literal(false),
  message: z.string(),
  error: z.object({ code: z.string(), hint: z.string().optional(), field: z.string().optional() }),
});
export type Failure = z.infer<typeof Failure>;
