import { expect, it } from "vitest";
import { bestTier } from "../../../src/cli/commands/tier-choice.ts";

const GIB = 1024 ** 3;

it.each([
  ["a usual machine", { processors: 4, memoryBytes: 8 * GIB, hasModel: true }, "moderate"],
  ["many processors", { processors: 16, memoryBytes: 32 * GIB, hasModel: true }, "high_accuracy"],
  ["one processor", { processors: 1, memoryBytes: 8 * GIB, hasModel: true }, "fastest"],
  ["little memory", { processors: 4, memoryBytes: GIB, hasModel: true }, "fastest"],
  ["no model", { processors: 16, memoryBytes: 32 * GIB, hasModel: false }, "fastest"],
])("the tier that is offered first is the best that the machine does well: %s", (_name, machine, tier) => {
  expect(bestTier(machine)).toBe(tier);
});
