import { expect, it } from "vitest";
import { conversionError } from "../../src/formats/conversion/convert.ts";
import { codeWords } from "../../src/lib/system-error.ts";

const REQUEST = {
  path: "/docs/a.docx",
  container: "zip",
  hash: "0",
  sizeBytes: 1,
  charsMax: 1000,
} as const;

it("refuses a document until it changes only if an idle machine cannot read it either", () => {
  const used = conversionError("time", REQUEST, "used 60 s of processor time without finishing");
  expect(used).toMatchObject({ code: "refused", retryable: false });
  expect(used.message).toBe("reading its text used 60 s of processor time without finishing");
  const busy = conversionError("busy", REQUEST, "got 2 s of processor time in 600 s");
  expect(busy).toMatchObject({ code: "READER_BUSY", retryable: true });
  expect(codeWords(busy.code)).toBe("this machine is too busy to read it (READER_BUSY)");
  expect(conversionError("unable", REQUEST, "")).toMatchObject({ code: "READER_UNABLE", retryable: true });
});
