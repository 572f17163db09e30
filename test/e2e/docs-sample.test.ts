import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  list,
  repositoryRoot,
  type Running,
  search,
  startUp,
  agreed,
  statusOf,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";

const sample = join(repositoryRoot, "..", "shared", "data", "docs-sample");
const present = existsSync(sample);
if (!present) process.stderr.write(`skipped: the real documents are not at ${sample}\n`);

/** The built program over 264 real documents, seen only through the folder and HTTP. */
describe.skipIf(!present)("a folder of real documents", () => {
  const folder = temporaryFolder("docs");
  const state = temporaryFolder("state");
  const docs = join(folder.path, "docs");
  let running: Running;
  let collectionId: string;
  let ownerId: string;

  beforeAll(async () => {
    cpSync(sample, docs, { recursive: true });
    rmSync(join(docs, "SHA256SUMS"));
    running = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state.path);
    const status = await agreed(docs, state.path);
    collectionId = status.collectionId ?? "";
    ({ ownerId } = status);
  });
  afterAll(async () => {
    await stop(running);
    folder.remove();
    state.remove();
  });

  /** What the folder holds, by title-independent identity: the sorted contents. */
  const contentsOnDisk = (): string[] =>
    readdirSync(docs, { recursive: true, encoding: "utf8" })
      .filter((name) => statSync(join(docs, name)).isFile())
      .map((name) => readFileSync(join(docs, name), "utf8"))
      .toSorted();
  const resources = () => list(running, collectionId, ownerId);
  const listAgrees = async (): Promise<boolean> => {
    const onDisk = contentsOnDisk();
    const listed = (await resources()).map(({ content }) => content ?? "").toSorted();
    return onDisk.length === listed.length && onDisk.every((text, index) => text === listed[index]);
  };
  const find = async (query: string): Promise<string[]> =>
    (await search(running, { query, collection_id: collectionId, owner_id: ownerId, top_k: 10 })).results.map(
      ({ payload }) => payload.content,
    );
  const idOf = async (word: string): Promise<string | undefined> =>
    (await resources()).find(({ content }) => content?.includes(word))?._id;

  it("a folder of real documents is listed file for file, each with its exact text", async () => {
    expect((await resources()).length).toBe(contentsOnDisk().length);
    expect(await listAgrees()).toBe(true);
  });

  it("answers questions from the right document", async () => {
    const [best] = (
      await search(running, {
        query: "what is a Prometheus histogram",
        collection_id: collectionId,
        owner_id: ownerId,
      })
    ).results;
    expect(best?.payload.content.toLowerCase()).toContain("histogram");
    expect(best?.score).toBeGreaterThan(0);
    expect(best?.score).toBeLessThanOrEqual(1);
    const inDocument = await search(running, {
      query: "borrow checker",
      doc_id: best?.payload.resourceId ?? "",
    });
    expect(inDocument.results.every(({ payload }) => payload.resourceId === best?.payload.resourceId)).toBe(
      true,
    );
  });

  it("follows a new file", async () => {
    writeFileSync(join(docs, "new.md"), "# Zebrafish\n\nThe quokkaword is in here.\n");
    await until("the new file in search", async () => (await find("quokkaword")).length === 1);
    expect(await listAgrees()).toBe(true);
  });

  it("follows an edit, under the same id", async () => {
    const before = await idOf("quokkaword");
    writeFileSync(join(docs, "new.md"), "# Zebrafish\n\nNow the wombatword is in here.\n");
    await until("the edit in search", async () => (await find("wombatword")).length === 1);
    expect(await find("quokkaword")).toEqual([]);
    expect(await idOf("wombatword")).toBe(before);
    expect(await listAgrees()).toBe(true);
  });

  it("follows a rename and a move, under the same id", async () => {
    const before = await idOf("wombatword");
    renameSync(join(docs, "new.md"), join(docs, "renamed.md"));
    mkdirSync(join(docs, "deep", "er"), { recursive: true });
    renameSync(join(docs, "renamed.md"), join(docs, "deep", "er", "moved.md"));
    await until("rest after the moves", async () => {
      const status = await statusOf(docs, state.path);
      return status.waiting === 0 && status.searchable === status.files && (await listAgrees());
    });
    expect(await idOf("wombatword")).toBe(before);
  });

  it("follows a renamed folder, under the same ids", async () => {
    const before = new Set((await resources()).map(({ _id }) => _id));
    renameSync(join(docs, "rust-book"), join(docs, "the-book"));
    await until("the folder's new names", async () => {
      const status = await statusOf(docs, state.path);
      return status.waiting === 0 && status.searchable === status.files;
    });
    expect(new Set((await resources()).map(({ _id }) => _id))).toEqual(before);
  });

  it("forgets a deleted file", async () => {
    rmSync(join(docs, "deep"), { recursive: true });
    await until("the file gone from search", async () => (await find("wombatword")).length === 0);
    await until("the file gone from the list", listAgrees);
  });

  it("sends nothing when it is started again", async () => {
    const before = await resources();
    expect(await stop(running)).toBe(0);
    running = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state.path);
    await until("agreement after the restart", () => running.output.stdout.includes(" searchable, "));
    expect(running.output.stdout).toContain("nothing to send");
    expect(await resources()).toEqual(before);
  });
});
