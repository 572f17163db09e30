import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { request } from "undici";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import { canaryWord, findCanaries } from "../../canaries.ts";
import { startProcess } from "./process.ts";
import { createBody, openRunning } from "./running.ts";

const KILLS = 8;
const DOCUMENTS = 60;

let stateDir: string;
let key: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-kill-erase-"));
  key = generateKey();
});
afterEach(() => rm(stateDir, { recursive: true }));

it("leaves no word of a document when an erasure that was killed at any moment is repeated", async () => {
  const words: string[] = [];
  const ids: string[] = [];
  const running = await openRunning({ stateDir });
  const writing = await running.issueKey("local", ["write"]);
  for (let at = 0; at < DOCUMENTS; at++) {
    const [title, text, tag] = [canaryWord(), canaryWord(), canaryWord()];
    words.push(title, text, tag);
    const body = createBody({ title, content: `${text} `.repeat(400), metadata: { tag } });
    const made = await running.send("POST", "/api/rag/resource", { body });
    expect(made.status).toBe(201);
    ids.push(made.json.data._id as string);
  }
  const { json: kept } = await running.send("POST", "/api/rag/resource", {
    body: createBody({ owner_id: "kept", content: "The kiwi walks." }),
  });
  await running.close();

  for (let kill = 0; kill < KILLS; kill++) {
    const { child, url } = await startProcess({ stateDir, key });
    const gone = once(child, "exit");
    const erasing = Promise.allSettled(
      ids.map((id) =>
        request(`${url}/api/rag/resource/${id}?purge=true`, {
          method: "DELETE",
          headers: { pauthkey: writing },
        }),
      ),
    );
    // Each kill a little later, up to the last steps.
    await Promise.race([sleep(2 + kill * kill * 6), erasing]);
    child.kill("SIGKILL");
    await Promise.all([gone, erasing]);
  }
  const again = await openRunning({ stateDir });
  for (const id of ids)
    expect([200, 404]).toContain((await again.send("DELETE", `/api/rag/resource/${id}?purge=true`)).status);
  expect(findCanaries(stateDir, words)).toEqual([]);
  const read = await again.send("GET", `/api/rag/resource/${kept.data._id}`);
  expect(read.json.data.content).toBe("The kiwi walks.");
  await again.close();
});
