import { hash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, fileForm, openRunning } from "../kb/service/running.ts";
import type { Running } from "../kb/service/running.ts";

const samples = join(import.meta.dirname, "../../../shared/data");
const OWNER = "reader";
/** Citations that are checked before the updates, and again after them. */
const CITATIONS = 1000;
const SLOW = 300_000;

interface Cited {
  readonly version: number;
  readonly payload: {
    readonly resourceId: string;
    readonly start: number;
    readonly end: number;
    readonly content: string;
    readonly before?: string;
    readonly after?: string;
    readonly lines: { readonly first: number; readonly last: number };
    readonly sha256: string;
  };
}

let running: Running;
beforeAll(async () => {
  running = await openRunning({ ocr: { pagesMax: 0 } });
});
afterAll(() => running.close());

const read = async (id: string, version: number): Promise<{ status: number; text: string; code: string }> => {
  const { status, json } = await running.send("GET", `/api/rag/resource/${id}?version=${version}`);
  return { status, text: json.data?.content, code: json.error?.code };
};

/** Compares a result with the text of its version, byte for byte. */
async function check({ version, payload }: Cited): Promise<void> {
  const { resourceId, start, end, content, before = "", after = "", lines, sha256 } = payload;
  const { status, text } = await read(resourceId, version);
  expect(status).toBe(200);
  expect(Buffer.from(before + text.slice(start, end) + after).equals(Buffer.from(content))).toBe(true);
  expect(hash("sha256", text)).toBe(sha256);
  const cited = text.split("\n").slice(lines.first - 1, lines.last);
  expect(cited.join("\n")).toContain(text.slice(start, end).replace(/\n$/, ""));
}

describe.skipIf(!existsSync(samples))("citations of real documents (skipped without ../shared/data)", () => {
  it(
    "equal the text of their version before and after updates, and a replaced text is refused",
    { timeout: SLOW },
    async () => {
      const files = [
        ...globSync(join(samples, "docs-sample/**/*.md")).slice(0, 150),
        ...globSync(join(samples, "pdfs/py-pdf/**/*.pdf")),
      ];
      const made: { id: string; collectionId: string; isText: boolean }[] = [];
      for (const path of files) {
        const isText = path.endsWith(".md");
        const settings = { chunkSize: 400, chunkOverlap: 50 };
        const facts = { title: basename(path), owner_id: OWNER, settings };
        const bytes = readFileSync(path);
        const url = isText
          ? undefined
          : (
              await running.send("POST", "/image/processing/upload", {
                body: fileForm(bytes, basename(path)),
              })
            ).json.file_url;
        const source = isText ? { content: bytes.toString("utf8") } : { content: undefined, url };
        const { status, json } = await running.send("POST", "/api/rag/resource", {
          body: createBody({ ...facts, ...source }),
        });
        // Some PDFs are damaged, encrypted or pictures.
        if (status === 201) made.push({ id: json.data._id, collectionId: json.data.collectionId, isText });
      }
      expect(made.filter(({ isText }) => !isText).length).toBeGreaterThan(5);

      const search = async (): Promise<Cited[]> => {
        const found = new Map<string, Cited & { id: string }>();
        for (const { id } of made) {
          const body = {
            query: "example value file use run type number name page text new function",
            doc_id: id,
            top_k: 20,
          };
          for (const result of (await running.send("POST", "/rag/query", { body })).json.results)
            found.set(result.id, result);
        }
        return [...found.values()].slice(0, CITATIONS);
      };
      const before = await search();
      expect(before).toHaveLength(CITATIONS);
      for (const cited of before) await check(cited);

      const changed = made.filter(({ isText }, at) => isText && at % 2 === 0);
      for (const { id } of changed) {
        const { text } = await read(id, 1);
        await running.send("PUT", `/api/rag/resource/${id}`, {
          body: { content: `A new first line 🌊\n${text}` },
        });
      }
      const after = await search();
      expect(after).toHaveLength(CITATIONS);
      expect(new Set(after.map(({ version }) => version))).toEqual(new Set([1, 2]));
      for (const cited of after) await check(cited);
      const ids = new Set(changed.map(({ id }) => id));
      for (const { version, payload } of before.filter((cited) => ids.has(cited.payload.resourceId)))
        expect(await read(payload.resourceId, version)).toMatchObject({ status: 410, code: "version_gone" });
    },
  );
});
