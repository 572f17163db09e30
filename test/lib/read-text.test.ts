import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { readText } from "../../src/lib/read-text.ts";

it("reads a text whose characters are split between pieces, up to its limit", async () => {
  const bytes = Buffer.from("für");
  const pieces = (): Readable => Readable.from([bytes.subarray(0, 2), bytes.subarray(2)]);
  expect(await readText(pieces(), 4)).toBe("für");
  await expect(readText(pieces(), 3)).rejects.toThrow("the answer is longer than 3 bytes");
});

it("stops an endless body at its limit", async () => {
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(1000);
    })(),
  );
  await expect(readText(endless, 5000)).rejects.toThrow("longer");
  expect(endless.destroyed).toBe(true);
});
