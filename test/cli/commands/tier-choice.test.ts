import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bestTier, thisMachine, withChosenTier } from "../../../src/cli/commands/tier-choice.ts";
import type { SourceOptions } from "../../../src/cli/output/options.ts";
import { loadSources } from "../../../src/cli/state/sources.ts";
import { cliContext } from "../context.ts";

const GIB = 1024 ** 3;

it.each([
  ["a usual machine", { processors: 4, memoryBytes: 8 * GIB, hasModel: true }, "moderate"],
  ["many processors", { processors: 16, memoryBytes: 32 * GIB, hasModel: true }, "high_accuracy"],
  ["one processor", { processors: 1, memoryBytes: 8 * GIB, hasModel: true }, "fastest"],
  ["little memory", { processors: 4, memoryBytes: GIB, hasModel: true }, "fastest"],
  ["no model", { processors: 16, memoryBytes: 32 * GIB, hasModel: false }, "fastest"],
])("the tier that is chosen is the best that the machine does well: %s", (_name, machine, tier) => {
  expect(bestTier(machine)).toBe(tier);
});

describe("the tier of new folders", () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), "kbsync-tier-"));
    mkdirSync(join(cwd, "docs"));
    mkdirSync(join(cwd, "papers"));
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  const tiersOf = async (dirs: readonly string[], given: SourceOptions = {}): Promise<readonly string[]> => {
    const context = cliContext({ cwd });
    const options = await withChosenTier(context, dirs, { stateDir: join(cwd, "state"), ...given });
    return loadSources(context, dirs, options).sources.map(({ collection }) => collection);
  };
  const configure = (config: object): void =>
    writeFileSync(join(cwd, "kbsync.config.json"), JSON.stringify(config));

  it("new folders get the best tier that this machine does well", async () => {
    const best = bestTier(await thisMachine({}));
    expect(await tiersOf(["docs", "papers"])).toEqual([best, best]);
  });

  it("a folder without a model on the machine is searched by words", async () => {
    configure({ kb: { embedding: { model: "no-model" } } });
    expect(await tiersOf(["docs"])).toEqual(["fastest"]);
  });

  it("a configured folder keeps its tier beside a new one", async () => {
    configure({ sources: [{ path: "docs", collection: "fastest" }] });
    expect(await tiersOf(["docs", "papers"])).toEqual(["fastest", bestTier(await thisMachine({}))]);
  });

  it("the tier of the command line counts for all", async () => {
    configure({ sources: [{ path: "docs", collection: "fastest" }] });
    expect(await tiersOf(["docs", "papers"], { tier: "high_accuracy" })).toEqual([
      "high_accuracy",
      "high_accuracy",
    ]);
  });
});
