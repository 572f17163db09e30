import { array, assert, constantFrom, property, string, tuple } from "fast-check";
import { expect, it } from "vitest";
import type { NoticeTopic } from "../../../../../src/kb/store/notices.ts";
import { echoOf, messagesOf, readMessage } from "../../../../../src/kb/store/postgres/notices/message.ts";

const announcements = array(
  tuple(constantFrom<NoticeTopic>("ingest", "change", "ended"), string({ unit: "binary" })),
  {
    maxLength: 500,
  },
).map((pairs) => {
  const keys = new Map<NoticeTopic, Set<string>>();
  for (const [topic, key] of pairs) keys.set(topic, (keys.get(topic) ?? new Set()).add(key));
  return keys;
});

it("writes every announcement once, in messages that PostgreSQL takes", () => {
  assert(
    property(announcements, (given) => {
      const messages = messagesOf("me", given);
      for (const text of messages) expect(Buffer.byteLength(text)).toBeLessThan(8000);
      const read = messages.flatMap((text) => readMessage(text)?.announced ?? []);
      expect(read).toEqual([...given].flatMap(([topic, keys]) => [...keys].map((key) => [topic, key])));
    }),
  );
});

it("asks the others to look at everything if one key is too long for a message", () => {
  const messages = messagesOf("me", new Map([["ended", new Set(["a", "b".repeat(8000)])]]));
  expect(messages.map(readMessage)).toEqual([{ from: "me", announced: undefined, echo: undefined }]);
});

it("sends nothing for nothing, and echoes without announcements", () => {
  expect(messagesOf("me", new Map())).toEqual([]);
  expect(readMessage(echoOf("me", 7))).toEqual({ from: "me", announced: [], echo: 7 });
});

it.each([undefined, "", "x", "[]", "{}", '{"from":1}', '{"from":"a","announced":[["later","k"]]}'])(
  "ignores the message %j of another program",
  (text) => expect(readMessage(text)).toBeUndefined(),
);
