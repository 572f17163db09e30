import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type FormData, Pool } from "undici";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import { startProcess } from "./process.ts";
import { createBody, fileForm, openRunning } from "./running.ts";

/** Creates and uploads until the service is gone; returns what was acknowledged. */
async function work(url: string, key: string, onAnswer: () => void) {
  const pool = new Pool(url, { connections: 8 });
  const resources = new Map<string, string>();
  const files = new Map<string, string>();
  let next = 0;
  const post = async (
    path: string,
    body: string | FormData,
    type?: string,
  ): Promise<{ data: { _id: string }; file_url: string }> => {
    const headers = { pauthkey: key, ...(type === undefined ? {} : { "content-type": type }) };
    const answer = await pool.request({ method: "POST", path, headers, body });
    return (await answer.body.json()) as { data: { _id: string }; file_url: string }; // fields are read where they exist
  };
  const one = async (): Promise<never> => {
    for (;;) {
      const number = next++;
      const content = `Text number ${number}. ${"Some words about it. ".repeat(100)}`;
      if (number % 3 === 0) {
        files.set((await post("/image/processing/upload", fileForm(content))).file_url, content);
      } else {
        const body = JSON.stringify(createBody({ owner_id: "killed", content }));
        resources.set((await post("/api/rag/resource", body, "application/json")).data._id, content);
      }
      onAnswer();
    }
  };
  await Promise.allSettled(Array.from({ length: 8 }, one));
  await pool.destroy();
  return { resources, files };
}

describe("kill -9 in the middle of creates and uploads", () => {
  it("kill -9 during creates and uploads loses nothing acknowledged, leaves nothing partial, and the next start is clean", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-kill-"));
    const key = generateKey();
    const { child, url } = await startProcess({ stateDir, key });
    let answers = 0;
    const { resources, files } = await work(url, key, () => {
      answers += 1;
      if (answers === 150) child.kill("SIGKILL");
    });
    expect(resources.size).toBeGreaterThan(50);
    expect(files.size).toBeGreaterThan(20);

    const running = await openRunning({ stateDir });
    const { json: collections } = await running.send("GET", "/api/rag/collections", { key });
    const collectionId = collections.data.collections[0]._id;
    const { json } = await running.send(
      "GET",
      `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=killed`,
      { key },
    );
    const listed = new Map<string, string>(
      json.data.resources.map((resource: { _id: string; content: string }) => [
        resource._id,
        resource.content,
      ]),
    );
    expect(listed.size).toBe(json.data.resources.length);
    for (const [id, content] of resources) expect(listed.get(id)).toBe(content);
    for (const id of listed.keys()) {
      const { json: chunks } = await running.send("GET", `/api/rag/resource/${id}/chunks`, { key });
      expect(chunks.data.chunks.at(-1).end).toBe(listed.get(id)?.trimEnd().length);
    }
    for (const [fileUrl, content] of files) {
      const path = new URL(fileUrl).pathname;
      expect((await running.send("GET", path)).text).toBe(content);
    }
    expect(await readdir(join(stateDir, "uploads", "incoming"))).toEqual([]);
    await running.close();
    await rm(stateDir, { recursive: true });
  });
});
