import { describe, expect, it } from "vitest";
import { STILL_READ } from "../../../src/wire/constants.ts";
import { isQuickCreate, isQuickUpdate } from "../../../src/kb/resources/quick.ts";
import type { Resource } from "../../../src/kb/store/resources.ts";
import type { CreateBody, UpdateBody } from "../../../src/wire/resource.ts";

const LONG = "x".repeat(1_000_001);
const recursive = { strategy: "recursive", chunkSize: 1000, chunkOverlap: 0 } as const;
const semantic = { ...recursive, strategy: "semantic" } as const;

describe("a create is done in a moment", () => {
  it.each<[string, Partial<CreateBody>, boolean]>([
    ["with a text", {}, true],
    ["in a tier with vectors", { collection_details: "moderate" }, true],
    ["with settings that need no model", { settings: recursive }, true],
    ["with a text of any length", { content: LONG }, true],
    ["not with a link or a file", { content: undefined }, false],
    ["not with a strategy that needs a model", { settings: semantic }, false],
  ])("a create is done in its request: %s", (_name, change, expected) => {
    const body = { content: "text", collection_details: "fastest", ...change };
    expect(isQuickCreate(body as CreateBody)).toBe(expected); // what else it holds makes no difference
  });
});

describe("an update is done in a moment", () => {
  const ready = { status: "ready", settings: recursive, content: "text" };
  it.each<[string, object, UpdateBody, boolean]>([
    ["of the title alone, whatever the resource is", { settings: semantic }, { title: "b" }, true],
    ["of a text", {}, { content: "new" }, true],
    ["of the settings", {}, { settings: { chunkSize: 500 } }, true],
    ["of a text to a long one", {}, { content: LONG }, true],
    ["of the settings of a long text", { content: LONG }, { settings: { chunkSize: 500 } }, true],
    ["not with an address", {}, { url: "https://example.org" }, false],
    ["not behind a change that still waits", { status: "queued" }, { title: "b" }, false],
    [
      "not of a document that is still being read",
      { status: "chunked", warning: `Page 2 is ${STILL_READ}` },
      { title: "b" },
      false,
    ],
    ["not of a text that a model splits", { settings: semantic }, { content: "new" }, false],
    ["not to a strategy that needs a model", {}, { settings: { strategy: "semantic" } }, false],
    [
      "of a text that a model split, to a strategy that needs none",
      { settings: semantic },
      { settings: { strategy: "recursive" } },
      true,
    ],
  ])("a change is done in its request: %s", (_name, before, body, expected) => {
    expect(isQuickUpdate({ ...ready, ...before } as unknown as Resource, body)).toBe(expected); // nothing else is read
  });
});
