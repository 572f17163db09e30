import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ListedFile } from "../../../src/wire/daemon-files.ts";
import { openWorld, type World } from "./harness.ts";

const TOKEN = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");
const ON = { settings: { blockSecrets: true } };
let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.end());

const troubled = (): readonly ListedFile[] => {
  const daemon = world.daemon();
  return daemon.files({ limit: 10 });
};
const everything = (): string => JSON.stringify([world.activity, world.service.requests]);

describe("a file with a secret", () => {
  it("a file with a secret is not sent, and is listed with rule and line, never with the secret", async () => {
    world.write("a.md", `# Notes\n\ntoken ${TOKEN}\n`);
    world.write("b.md", "no secret");
    await world.sync(ON);
    expect(world.service.live().map(({ title }) => title)).toEqual(["b.md"]);
    const [file] = troubled();
    expect(file).toMatchObject({ path: "a.md", state: "failed", code: "secret" });
    expect(file?.message).toContain("line 3 looks like a secret (github: GITHUB_TOKEN)");
    expect(file?.message).toContain('"allowSecrets": ["/a.md"]');
    expect(everything()).not.toContain(TOKEN);
  });

  it("keeps the version at the service when a later one has a secret, and says so", async () => {
    world.write("a.md", "first");
    await world.sync(ON);
    world.write("a.md", `second ${TOKEN}`);
    await world.sync(ON);
    expect(world.service.live()).toMatchObject([{ content: "first" }]);
    expect(troubled()[0]?.message).toContain("the service still has the version before");
  });

  it("a file with a secret is sent once the secret is removed", async () => {
    world.write("a.md", `first ${TOKEN}`);
    await world.sync(ON);
    world.write("a.md", "second");
    await world.sync(ON);
    expect(world.service.live()).toMatchObject([{ content: "second" }]);
  });

  it("a file with a secret is sent once the configuration allows it", async () => {
    world.write("fixtures/a.md", `first ${TOKEN}`);
    await world.sync(ON);
    expect(world.service.live()).toEqual([]);
    await world.sync({ ...ON, sources: [world.source({ allowSecrets: ["fixtures/**"] })] });
    expect(world.service.live()).toHaveLength(1);
  });

  it("a file with a secret is sent if nothing is blocked", async () => {
    world.write("a.md", TOKEN);
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });

  it.each([
    ["its title", "---\ntitle: $\n---\n\ntext"],
    ["its tags", "---\ntags: [$]\n---\n\ntext"],
  ])("a file with a secret is not sent if the secret is in %s", async (_name, text) => {
    world.write("a.md", text.replace("$", TOKEN));
    await world.sync(ON);
    expect(world.service.live()).toEqual([]);
  });

  it("a PDF is sent without a check of its text", async () => {
    writeFileSync(join(world.root, "a.pdf"), `%PDF-1.4\n% ${TOKEN}\n%%EOF\n`);
    await world.sync(ON);
    expect(world.service.live().map(({ title }) => title)).toEqual(["a.pdf"]);
  });

  it("a file with a secret is refused by a dry run with the same words", async () => {
    world.write("a.md", `x ${TOKEN}`);
    const daemon = world.daemon(ON);
    const { planned } = await daemon.syncOnce({ dryRun: true });
    expect(planned).toMatchObject([
      { action: "refuse", reason: expect.stringContaining("line 1 looks like") },
    ]);
  });
});
