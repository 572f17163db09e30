import { describe, expect, it } from "vitest";
import { questionLine, replayLine, webhookLines } from "../../../src/cli/commands/webhooks.ts";

const ENDPOINT = {
  _id: "e1",
  url: "https://example.com/hook",
  events: [],
  description: "",
  enabled: true,
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
  waiting: 2,
  dead: 1,
  deliveredAt: null,
  problem: null,
};
const DEAD = {
  webhookId: "msg_1",
  endpointId: "e1",
  url: "https://example.com/hook",
  type: "resource.chunked",
  attempts: 10,
  problem: "the receiver answered 500",
  createdAt: "2026-01-01T00:00:00.000Z",
};

describe("webhookLines", () => {
  it.each([
    ["nothing", [], [], "no endpoint is registered\n"],
    [
      "an endpoint that works",
      [ENDPOINT],
      [],
      "endpoint e1  https://example.com/hook  all but resource.updated; 2 waiting, 1 dead\n",
    ],
    [
      "one that does not",
      [{ ...ENDPOINT, enabled: false, events: ["resource.error"], problem: "no answer" }],
      [],
      "endpoint e1  https://example.com/hook  resource.error; 2 waiting, 1 dead, disabled, last: no answer\n",
    ],
    [
      "a dead letter",
      [],
      [DEAD],
      "dead msg_1  2026-01-01T00:00:00.000Z  resource.chunked  https://example.com/hook  10 attempts: the receiver answered 500\n",
    ],
  ])("webhookLines describes %s", (_name, endpoints, dead, words) => {
    expect(webhookLines(endpoints, dead)).toBe(words);
  });
});

describe("questionLine", () => {
  it.each([
    ["nothing", { waiting: 0, oldestAt: null, failed: 0 }, ""],
    [
      "questions that wait",
      { waiting: 2, oldestAt: "2026-01-01T00:00:00.000Z", failed: 0 },
      "questions  2 waiting, the oldest since 2026-01-01T00:00:00.000Z\n",
    ],
    [
      "questions that failed",
      { waiting: 0, oldestAt: null, failed: 1 },
      "questions  0 waiting; 1 reported as failed since the service started\n",
    ],
  ])("questionLine describes %s", (_name, questions, words) => {
    expect(questionLine(questions)).toBe(words);
  });
});

describe("a replay", () => {
  it.each([
    ["of all", { replayed: 3 }, "3 messages queued again\n"],
    [
      "of some",
      { replayed: 1, disabled: 2 },
      "1 message queued again, 2 not sent: their endpoint is disabled\n",
    ],
  ])("prints %s in a line", (_name, data, line) => {
    expect(replayLine(data)).toBe(line);
  });
});
