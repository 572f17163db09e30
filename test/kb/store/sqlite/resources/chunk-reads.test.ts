import { expect, it } from "vitest";
import { chunkId } from "../../../../../src/kb/store/rows/chunks.ts";

const RESOURCE = "6b01521045b18e441998bfa3";

it("the ids of chunks are UUIDs of version 8, each another one", () => {
  const ids = Array.from({ length: 100 }, (_, index) => chunkId(RESOURCE, 1, index));
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(ids).size).toBe(100);
  expect(new Set(ids.map((id) => id[19]))).toEqual(new Set(["8", "9", "a", "b"]));
});

it("a version of a resource has the same ids in every release", () => {
  expect(chunkId(RESOURCE, 1, 0)).toBe("75d43dc5-32b0-8b68-aeac-172a12540ec6");
  expect(chunkId(RESOURCE, 2, 0)).not.toBe(chunkId(RESOURCE, 1, 0));
  expect(chunkId(RESOURCE.replace("6", "7"), 1, 0)).not.toBe(chunkId(RESOURCE, 1, 0));
});
