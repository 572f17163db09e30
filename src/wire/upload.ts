import { z } from "zod";

/** Largest upload by default, in bytes (32 MB, the specification's limit for images). */
export const UPLOAD_BYTES_MAX = 32 * 1024 * 1024;

/** Form of `POST /image/processing/upload`. */
export const UploadForm = z.object({ file: z.file() });

/** Answer of `POST /image/processing/upload`. */
export const UploadAnswer = z
  .object({ success: z.literal(true), file_url: z.string().min(1) })
  .meta({ id: "UploadAnswer" });
export type UploadAnswer = z.infer<typeof UploadAnswer>;
