import { type AskOptions, openCappedPool } from "../../lib/capped/pool.ts";
import type { CappedEnd } from "../../lib/capped/process.ts";
import { siblingModule } from "../../lib/sibling.ts";
import { Refusal } from "../resources/refusal.ts";
import type { RefusalCode } from "../resources/refusal.ts";
import type { ImageFacts, ImageFailure, ImageRequest } from "./image-child.ts";

/** Reads images in a process of its own, with capped memory and time: they come from anybody. */
export interface ImageReader {
  /**
   * What an image is; with `render` it is decoded, and given as models take it. Throws `image_too_large`, told before a
   * pixel is decoded, `damaged_image`, `extraction_memory`, `extraction_timeout`, and the signal's reason.
   */
  look(
    path: string,
    mediaType: string,
    options: { readonly render: boolean } & Pick<AskOptions, "signal" | "tenant">,
  ): Promise<ImageFacts>;
  close(): void;
}

/** The most pixels, as for an image whose text is recognised. */
const PIXELS_MAX = 64_000_000;
/** Images read at once. */
const PROCESSES = 2;
/** Beyond what Node takes; a picture of the most pixels takes some 300 MB. */
const MEMORY_MB = 1024;
const TIMEOUT_MS = 60_000;
/** Starting a process takes half a second. */
const IDLE_MS = 30_000;

/** Opens it; no process starts before the first image. */
export function openImageReader(): ImageReader {
  const pool = openCappedPool<ImageRequest, ImageFacts, ImageFailure>(
    {
      module: siblingModule(import.meta.url, "image-child"),
      // The decoders are native.
      flags: ["--allow-addons"],
      failure: (code, _request, detail) => imageRefusal(code, detail),
    },
    {
      processes: PROCESSES,
      // So that nobody waits for the end of another account's images.
      guests: 1,
      memoryMb: MEMORY_MB,
      timeoutMs: TIMEOUT_MS,
      idleMs: IDLE_MS,
      busyCode: "extractor_busy",
    },
  );
  return {
    look: async (path, mediaType, { render, ...ask }) => {
      const [facts] = await pool.ask({ path, mediaType, pixelsMax: PIXELS_MAX, render }, ask);
      if (facts === undefined) throw new Error("an image was read without an answer");
      return facts;
    },
    close: () => pool.close(),
  };
}

function imageRefusal(code: ImageFailure | CappedEnd, detail: string): Refusal {
  const cause = new Error(detail);
  const refuse = (refusal: RefusalCode, message: string): Refusal => new Refusal(refusal, message, { cause });
  switch (code) {
    case "image_too_large":
      return refuse(
        code,
        `The image has ${detail} pixels, expected at most ${PIXELS_MAX / 1_000_000} million.`,
      );
    case "damaged_image":
      return refuse(code, "The image is damaged and cannot be read.");
    case "memory":
      return refuse("extraction_memory", `Reading the image takes more than ${MEMORY_MB} MB of memory.`);
    case "time":
      return refuse("extraction_timeout", `Reading the image takes longer than ${TIMEOUT_MS / 1000} s.`);
    case "fall":
      return refuse("extraction_crashed", "The process that reads the image ended over it, twice.");
    case "unable":
      return refuse("extraction_failed", "The image could not be read; the same request may succeed later.");
  }
}
