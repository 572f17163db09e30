import { expect, it } from "vitest";
import { readEvent } from "../../../src/console/ask/events.ts";

it.each([
  ["an event", 'event: delta\ndata: {"content":"a"}', { event: "delta", data: '{"content":"a"}' }],
  ["data of several lines", "event: delta\ndata: a\ndata:b", { event: "delta", data: "a\nb" }],
  ["an event without a name", "data: a", { event: "message", data: "a" }],
  ["a comment", ": still working", undefined],
])("a stream of events is read: %s", (_name, block, event) => {
  expect(readEvent(block)).toEqual(event);
});
