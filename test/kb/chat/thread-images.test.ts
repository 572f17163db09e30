import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import {
  addThreadImages,
  renderedBytes,
  withField,
  type ChatImage,
  type ImageParts,
} from "../../../src/kb/chat/images.ts";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import type { ThreadImage } from "../../../src/kb/store/chat.ts";
import { IMAGES_BYTES_MAX } from "../../../src/wire/chat.ts";

const MB = 1024 * 1024;

/** Images by their token; a size of the rendered form, or the error of reading them. */
const read = new Map<string, number | Error>();
const parts = {
  kb: {
    addresses: { urlOf: ({ token }: { token: string }) => `url of ${token}` },
    files: {
      use: ({ token }: { token: string }, work: (path: string) => Promise<unknown>) => work(token),
    },
  },
  reader: {
    inspect: async (token: string) => {
      const outcome = read.get(token) ?? 1;
      if (outcome instanceof Error) throw outcome;
      return { rendered: { bytes: { length: outcome } } };
    },
  },
} as unknown as ImageParts; // all that is used of them

const file = (token: string, sizeBytes = 10, sha256 = token) => ({
  token,
  accountId: "a",
  name: token,
  mediaType: "image/png",
  sizeBytes,
  sha256,
  createdAt: "2026-01-01T00:00:00.000Z",
});
/** Images of a thread, the newest first. */
const linked = (...images: ReturnType<typeof file>[]): ThreadImage[] =>
  images.map((each, at) => Object.assign(each, { turnAt: images.length - 1 - at }));
const own = (token: string, sizeBytes = 10, rendered = 1): ChatImage =>
  ({
    url: `url of ${token}`,
    file: file(token, sizeBytes),
    isNew: false,
    facts: { rendered: { bytes: { length: rendered } } },
  }) as unknown as ChatImage; // all that is read of it
async function add(
  images: readonly ChatImage[],
  earlier: readonly ThreadImage[],
  imagesMax = 10,
  signal = new AbortController().signal,
) {
  const found = await addThreadImages(parts, images, earlier, { render: true, signal, imagesMax });
  return {
    images: found.images.map((each) => [each.file.token, each.turnAt]),
    leftOut: found.leftOut.map(({ url, reason }) => [url, reason]),
  };
}
const OVER = "newer images take up the limit";

describe("the images of a thread", () => {
  it("the images of a thread come before those of the question, in the order of their turns", async () => {
    expect(await add([own("own")], linked(file("new"), file("old")))).toEqual({
      images: [
        ["old", 0],
        ["new", 1],
        ["own", undefined],
      ],
      leftOut: [],
    });
  });

  it("the images of a thread count once, however often they were sent", async () => {
    const again = linked(file("copy", 10, "own"), file("new"), file("other", 10, "new"));
    expect((await add([own("own")], again)).images).toEqual([
      ["new", 1],
      ["own", undefined],
    ]);
  });

  it("the images of a thread are left out beyond the number of images, the oldest first", async () => {
    expect(await add([own("own")], linked(file("new"), file("old")), 2)).toEqual({
      images: [
        ["new", 1],
        ["own", undefined],
      ],
      leftOut: [["url of old", OVER]],
    });
  });

  it("the images of a thread are left out beyond the bytes of a question, and a smaller older one may still fit", async () => {
    const half = IMAGES_BYTES_MAX / 2;
    const { images, leftOut } = await add(
      [own("own", half)],
      linked(file("large", half + 1), file("fits", half), file("one", 1)),
    );
    expect(images.map(([token]) => token)).toEqual(["fits", "own"]);
    expect(leftOut).toEqual([
      ["url of large", OVER],
      ["url of one", OVER],
    ]);
  });

  it("the images of a thread are left out beyond the bytes of what models are shown", async () => {
    read.set("large", IMAGES_BYTES_MAX - MB + 1).set("fits", IMAGES_BYTES_MAX - MB);
    const { images, leftOut } = await add([own("own", 10, MB)], linked(file("large"), file("fits")));
    expect(images.map(([token]) => token)).toEqual(["fits", "own"]);
    expect(leftOut).toEqual([["url of large", OVER]]);
  });

  it("the images of a thread are left out with the reason if they cannot be read; other failures are thrown", async () => {
    read.set("broken", new KbsyncError("the image is damaged", { code: "damaged_image" }));
    expect((await add([], linked(file("broken")))).leftOut).toEqual([
      ["url of broken", "the image is damaged"],
    ]);
    const bug = new TypeError("bug");
    read.set("bug", bug);
    await expect(add([], linked(file("bug")))).rejects.toBe(bug);
    const left = AbortSignal.abort(new Error("left"));
    await expect(add([], linked(file("broken")), 10, left)).rejects.toThrow("left");
  });
});

it("renderedBytes counts what models are shown", () => {
  expect([renderedBytes([]), renderedBytes([own("a", 10, 3), own("b", 10, 4)])]).toEqual([0, 7]);
});

describe("a failure of the work on an image", () => {
  const failing = async (error: unknown): Promise<unknown> => {
    const fail = async (): Promise<never> => {
      throw error;
    };
    return withField("user_urls[1].url", fail).catch((caught: unknown) => caught);
  };

  it.each([
    "link_failed",
    "unsupported_media_type",
    "empty_file",
    "image_too_large",
    "damaged_image",
    "extraction_memory",
    "extraction_timeout",
    "extraction_crashed",
    "invalid_field",
  ])("names the field of the request: %s", async (code) => {
    const error = new KbsyncError("url: it is so", { code, hint: "do that" });
    expect(await failing(error)).toMatchObject({
      refusal: code,
      field: "user_urls[1].url",
      message: "user_urls[1].url: it is so",
      hint: "do that",
      cause: error,
    });
  });

  it("says who can allow an address that is refused", async () => {
    expect(await failing(new KbsyncError("no", { code: "link_refused" }))).toMatchObject({
      refusal: "link_refused",
      hint: "The operator of the service can allow other addresses with kb.allowHosts.",
    });
    expect(await failing(new KbsyncError("no", { code: "link_refused", hint: "ask" }))).toMatchObject({
      hint: "ask",
    });
  });

  it("says that an uploaded file is gone", async () => {
    expect(await failing(Object.assign(new Error("no"), { code: "ENOENT" }))).toMatchObject({
      refusal: "invalid_field",
      message: "user_urls[1].url: the uploaded file no longer exists",
    });
  });

  it.each([
    ["of the same field", new Refusal("link_failed", "user_urls[1].url: no", { field: "user_urls[1].url" })],
    ["of the service", new KbsyncError("no", { code: "store_busy" })],
    ["of the program", new TypeError("bug")],
  ])("a failure of the work on an image is thrown as it is if it is one %s", async (_name, error) => {
    expect(await failing(error)).toBe(error);
  });
});
