import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { agreed, list, startUp, statusOf, stop, temporaryFolder, until } from "./program.ts";

const FILES = 1500;

/** Kill -9 in the middle of the first sync, several times, then let it finish: one resource a file. */
it("makes one resource a file through kill -9 in the middle of the first sync", async () => {
  const folder = temporaryFolder("kill-docs");
  const state = temporaryFolder("kill-state");
  for (let index = 0; index < FILES; index++) {
    const part = join(folder.path, `part-${index % 10}`);
    mkdirSync(part, { recursive: true });
    // A tenth of the files share their text: adopting by content alone would confuse them.
    const body =
      index % 10 === 0 ? "the same words in many files\n" : `text of its own ${index}\n`.repeat(20);
    writeFileSync(join(part, `file-${index}.md`), `# Title ${index % 50}\n\n${body}`);
  }
  let interrupted = 0;
  for (const share of [0.02, 0.1, 0.3, 0.5, 0.8]) {
    const running = await startUp(["up", folder.path, "--tier", "fastest", "--port", "0"], state.path);
    const probe = await until("some resources", async () => {
      const status = await statusOf(folder.path, state.path).catch(() => undefined);
      return status !== undefined && status.inAgreement >= FILES * share && status;
    });
    if (probe.inAgreement < FILES) interrupted++;
    await stop(running, "SIGKILL");
  }
  expect(interrupted, "kills that came in the middle of the sync").toBeGreaterThan(0);

  const running = await startUp(["up", folder.path, "--tier", "fastest", "--port", "0"], state.path);
  const status = await agreed(folder.path, state.path, FILES);
  const resources = await list(running, status.collectionId ?? "", status.ownerId);
  expect(resources.length).toBe(FILES);
  expect(new Set(resources.map(({ _id }) => _id)).size).toBe(FILES);
  expect(await stop(running)).toBe(0);
  folder.remove();
  state.remove();
});
