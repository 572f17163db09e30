import { expect, it } from "vitest";
import { isUnderWay } from "../../../src/kb/resources/quick.ts";

it.each<[Parameters<typeof isUnderWay>[0], boolean]>([
  [{ status: "queued", warning: null }, true],
  [{ status: "chunked", warning: "Pages 2–3 are still being read." }, true],
  [{ status: "chunked", warning: null }, false],
  [{ status: "chunked", warning: "Page 2 was not read: it is damaged." }, false],
  [{ status: "error", warning: "Page 2 is not read." }, false],
])("a request that waits for a document with %o goes on waiting: %s", (resource, waits) => {
  expect(isUnderWay(resource)).toBe(waits);
});
