import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openPlanTexts, type PlanTexts } from "../../../src/sync/operator/plan-texts.ts";
import type { SourceDocument } from "../../../src/sync/read/outcome.ts";
import type { FileTexts } from "../../../src/sync/read/secret-check.ts";

const facts = {
  hash: "",
  sizeBytes: 5000,
  entry: { path: "a", sizeBytes: 5000, mtimeMs: 0, ctimeMs: 0, ino: 0 },
  recipe: { title: "a", description: "", settingsKey: "", kind: "file" },
} as unknown as SourceDocument; // a plan reads only what a case gives it
const document = (more: object): SourceDocument => ({ ...facts, ...more });
const PDF = document({ kind: "file", mediaType: "application/pdf" });

const texts = (read: (path: string, signal: AbortSignal) => Promise<string | undefined>): FileTexts => ({
  read: async (path, _type, signal) => {
    const text = await read(path, signal);
    return text === undefined ? undefined : { text, beyond: "beyond" };
  },
});
const untilAbort = async (signal: AbortSignal): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason));
  return await promise;
};
const opened = (read: (path: string, signal: AbortSignal) => Promise<string | undefined>): PlanTexts =>
  openPlanTexts(texts(read), undefined);

describe("the texts of a plan", () => {
  it.each<[string, SourceDocument, object]>([
    ["a text", document({ kind: "content", content: "four" }), { bytes: 5000, chars: 4 }],
    ["an address", document({ kind: "link", url: "https://example.org" }), { bytes: 5000 }],
    ["a picture", document({ kind: "file", mediaType: "image/png" }), { bytes: 5000, isPicture: true }],
    ["a PDF", PDF, { bytes: 5000, chars: 12 }],
  ])("knows the size of %s", async (_name, each, size) => {
    const plan = opened(async () => await Promise.resolve("twelve chars"));
    expect((await plan.of(each, "/root")).size).toEqual(size);
    plan.close();
  });

  it("takes a PDF without any text for a scan", async () => {
    const plan = opened(async () => await Promise.resolve("\n\n"));
    expect(await plan.of(PDF, "/root")).toMatchObject({ size: { bytes: 5000, isPicture: true } });
    plan.close();
  });

  it("reads each file once, and gives its text to the check", async () => {
    const read: string[] = [];
    const plan = opened(async (path) => await Promise.resolve(String(read.push(path))));
    const { inside } = await plan.of(PDF, "/root");
    expect([await inside(), await inside(), read]).toEqual([
      { text: "1", beyond: "beyond" },
      { text: "1", beyond: "beyond" },
      ["/root/a"],
    ]);
    plan.close();
  });

  it("reports why a file cannot be read, to the check too", async () => {
    const locked = new KbsyncError("it is locked", { code: "any" });
    const plan = opened(async () => await Promise.reject(locked));
    const found = await plan.of(PDF, "/root");
    expect(found).toMatchObject({ size: { bytes: 5000 }, unread: "it is locked" });
    await expect(found.inside()).rejects.toBe(locked);
    plan.close();
  });

  it("stops reading at the end of its time, and says so of each file that is left", async () => {
    let reads = 0;
    const slow = texts(async (_path, signal) => {
      reads += 1;
      return await untilAbort(signal);
    });
    const plan = openPlanTexts(slow, undefined, 1);
    for (let file = 0; file < 3; file++) {
      const { size, unread, inside } = await plan.of(PDF, "/root");
      expect([size, unread, await inside()]).toEqual([
        { bytes: 5000 },
        "its text is not read within the 0.001 s of a plan",
        undefined,
      ]);
    }
    expect(reads).toBe(1);
    plan.close();
  });

  it("throws the signal's reason when the plan is aborted", async () => {
    const stopping = new AbortController();
    const reason = new Error("enough");
    const plan = openPlanTexts(
      texts(async (_path, signal) => await untilAbort(signal)),
      stopping.signal,
    );
    const read = plan.of(PDF, "/root");
    stopping.abort(reason);
    await expect(read).rejects.toBe(reason);
    plan.close();
  });
});
