import type { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import { openLocalEmbedder } from "../../../src/kb/embed/local.ts";
import { packagedModelFolder } from "../../../src/kb/embed/model-files.ts";

/** Started threads of the model, in order. */
const threads = vi.hoisted(() => [] as Worker[]);
vi.mock("node:worker_threads", async (original) => {
  const real = await original<typeof import("node:worker_threads")>();
  class RecordedWorker extends real.Worker {
    constructor(...given: ConstructorParameters<typeof Worker>) {
      super(...given);
      threads.push(this);
    }
  }
  return { ...real, Worker: RecordedWorker };
});

it.skipIf(packagedModelFolder() === undefined)(
  "the next text restarts a model whose thread crashed",
  async () => {
    const embedder = await openLocalEmbedder({});
    if (embedder.kind === "no-model") throw new Error(embedder.reason);
    const [before] = await embedder.queries.embed(["The tide turns."]);
    await threads[0]?.terminate();
    const [after] = await embedder.queries.embed(["The tide turns."]);
    expect([threads.length, after]).toEqual([2, before]);
    await embedder.close();
  },
);
