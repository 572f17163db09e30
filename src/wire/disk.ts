import { z } from "zod";
import { answerOf } from "./answers.ts";
import { Count } from "./primitives.ts";

/** The disk that holds the store and the uploads. */
export const Disk = z
  .object({
    freeBytes: Count.describe("Bytes that the service may still write."),
    totalBytes: Count,
  })
  .meta({ id: "Disk" });
export type Disk = z.infer<typeof Disk>;

/** Answer of `GET /v1/disk` (an addition). */
export const DiskAnswer = answerOf(Disk).meta({ id: "DiskAnswer" });
export type DiskAnswer = z.infer<typeof DiskAnswer>;
