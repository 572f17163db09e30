import { z } from "zod";

/** Form of `POST /image/processing/upload`. */
export const UploadForm = z.object({ file: z.file() });

/** Answer of `POST /image/processing/upload`. */
export const UploadAnswer = z
  .object({ success: z.literal(true), file_url: z.string().min(1) })
  .meta({ id: "UploadAnswer" });
export type UploadAnswer = z.infer<typeof UploadAnswer>;
