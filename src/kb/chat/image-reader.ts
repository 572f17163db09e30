import { END_CODES, endWords } from "../../lib/capped/end-failure.ts";
import { type AskOptions, openCappedPool } from "../../lib/capped/pool.ts";
import type { CappedEnd } from "../../lib/capped/process.ts";
import { entryUrl } from "../../lib/package.ts";
import { Refusal } from "../resources/refusal.ts";
import type { ImageFacts, ImageFailure, ImageRequest } from "./image-child.ts";

/** Reads images in a separate process with capped memory and time, because they are untrusted. */
export interface ImageReader {
  /**
   * Reads the facts of an image. With `render`, also decodes it into a form that models accept. Throws `image_too_large` before it
   * decodes a pixel, `damaged_image`, `extraction_memory`, `extraction_timeout`, `extractor_busy`, and the signal's reason.
   */
  inspect(
    path: string,
    mediaType: string,
    options: { readonly render: boolean } & Pick<AskOptions, "signal" | "tenant">,
  ): Promise<ImageFacts>;
  close(): void;
}

/** Most pixels of an image, as for text recognition. */
const PIXELS_MAX = 64_000_000;
const LIMITS = {
  processes: 1,
  clientProcesses: 2,
  /** Lets an account without a process start one beyond the bound, so that it does not wait for other accounts' images. */
  guests: 1,
  /** In addition to Node's own memory. A picture with the most pixels takes some 300 MB. */
  memoryMb: 1024,
  cpuMs: 60_000,
  /** Starting a process takes half a second. */
  idleMs: 30_000,
};

/** Opens the reader. No process starts before the first image. */
export function openImageReader(): ImageReader {
  const pool = openCappedPool<ImageRequest, ImageFacts, ImageFailure>(
    {
      module: entryUrl("kb/chat/image-child"),
      // The decoders are native.
      flags: ["--allow-addons"],
      failure: (code, _request, detail) => imageRefusal(code, detail),
    },
    LIMITS,
  );
  return {
    inspect: async (path, mediaType, { render, ...ask }) => {
      const [facts] = await pool.ask(
        { path, mediaType, pixelsMax: PIXELS_MAX, render },
        { ...ask, lane: "client" },
      );
      if (facts === undefined) throw new Error("an image was read without an answer");
      return facts;
    },
    close: () => pool.close(),
  };
}

function imageRefusal(code: ImageFailure | CappedEnd, detail: string): Refusal {
  const cause = new Error(detail);
  switch (code) {
    case "image_too_large": {
      const message = `The image has ${detail} pixels, expected at most ${PIXELS_MAX / 1_000_000} million.`;
      return new Refusal(code, message, { cause });
    }
    case "damaged_image":
      return new Refusal(code, "The image is damaged and cannot be read.", { cause });
    case "memory":
    case "time":
    case "hang":
    case "busy":
    case "fall":
    case "unable": {
      const message = endWords("reading the image", LIMITS, detail)[code];
      return new Refusal(END_CODES[code], `${message.charAt(0).toUpperCase()}${message.slice(1)}.`, {
        cause,
      });
    }
  }
}
