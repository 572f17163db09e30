import { expect, it } from "vitest";
import { planLines } from "../../../src/cli/commands/sync.ts";

it("a halted source is named by its folder, with the reason", () => {
  expect(planLines([{ source: "/docs", path: "", action: "halt", reason: "the folder is missing" }])).toBe(
    "halt     /docs  (the folder is missing)\n1 to halt; nothing was sent\n",
  );
});
