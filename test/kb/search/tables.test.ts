import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tableToMarkdown } from "../../../src/formats/markup/table.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";

const PEOPLE = Array.from({ length: 300 }, (_, at) => ({
  name: `Person ${at + 1}`,
  department: ["Harbour", "Lighthouse", "Ferry", "Customs"][at % 4] ?? "",
  city: ["Ostend", "Bruges", "Ghent"][at % 3] ?? "",
  phone: `+32 59 ${String(10_000 + at * 37)}`,
}));
const HEAD = ["name", "department", "city", "phone"];
const ROWS = PEOPLE.map(({ name, department, city, phone }) => [name, department, city, phone]);

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

async function created(body: object): Promise<{ readonly _id: string; readonly ownerId: string }> {
  const { status, json } = await running.send("POST", "/api/rag/resource", { body: createBody(body) });
  expect(status).toBe(201);
  return json.data;
}

async function uploaded(name: string, text: string): Promise<string> {
  const { json } = await running.send("POST", "/image/processing/upload", { body: fileForm(text, name) });
  return json.file_url;
}

describe("a query for a value of one row finds the row with its column names", () => {
  const table = tableToMarkdown([HEAD, ...ROWS]);
  it.each<[string, () => Promise<object>]>([
    ["in a spreadsheet as the daemon sends it", async () => ({ content: `## People\n\n${table}` })],
    [
      "in a CSV",
      async () => ({
        content: undefined,
        url: await uploaded("p.csv", [HEAD, ...ROWS].map((row) => row.join(",")).join("\n")),
      }),
    ],
    [
      "in JSON in one line",
      async () => ({ content: undefined, url: await uploaded("p.json", JSON.stringify({ people: PEOPLE })) }),
    ],
    ["in JSON with lines", async () => ({ content: JSON.stringify({ people: PEOPLE }, null, 2) })],
  ])("a query finds a row with its column names %s", async (_name, body) => {
    const { _id: doc_id } = await created(await body());
    const { json } = await running.send("POST", "/rag/query", {
      body: { query: "phone number of Person 150", doc_id, top_k: 1 },
    });
    const [{ payload }] = json.results;
    expect(payload.content).toMatch(/\bphone\b/);
    expect(payload.content).toMatch(/Person 150\b[^]{0,120}\+32 59 15513/);
  });
});

describe("context of a result", () => {
  const rows = Array.from({ length: 60 }, (_, at) => `| Berth ${at} | ${at * 3} m | east |`).join("\n");
  const code = Array.from({ length: 60 }, (_, at) => `lock(${at}, "gate ${at}");`).join("\n");
  const content = `# Harbour\n\nAbout it.\n\n## Berths\n\n| Berth | Depth | Quay |\n|---|---|---|\n${rows}\n\n## Locks\n\n\`\`\`ts\n${code}\n\`\`\`\n`;

  it("a result has title, headings and path, and repeats the head of its table or the fence of its code", async () => {
    const { _id: doc_id } = await created({ title: "Port  guide", content });
    const ask = async (query: string) =>
      (await running.send("POST", "/rag/query", { body: { query, doc_id, top_k: 1 } })).json.results[0]
        .payload;
    const berth = await ask("Berth 41 depth");
    expect(berth).toMatchObject({
      title: "Port  guide",
      headings: ["Harbour", "Berths"],
      path: "Port guide > Harbour > Berths",
      before: "| Berth | Depth | Quay |\n|---|---|---|\n",
    });
    expect(berth.content).toMatch(/^\| Berth \| Depth \| Quay \|\n\|---\|---\|---\|\n\| Berth \d+ /);
    const lock = await ask("lock gate 50");
    expect(lock).toMatchObject({ headings: ["Harbour", "Locks"], before: "```ts\n" });
    expect(lock.content).toMatch(/^```ts\nlock\(\d+[^]*;\n```$/);
  });

  it("chunks without their repeated parts are the text at their offsets", async () => {
    const { _id } = await created({ content });
    const { json } = await running.send("GET", `/api/rag/resource/${_id}/chunks`);
    const chunks: { start: number; end: number; content: string; before?: string; after?: string }[] =
      json.data.chunks;
    expect(chunks.some(({ before }) => before !== undefined)).toBe(true);
    for (const { start, end, content: shown, before = "", after = "" } of chunks) {
      expect(shown).toBe(before + content.slice(start, end) + after);
      expect(shown.length).toBeLessThanOrEqual(1000);
    }
    const { json: read } = await running.send("GET", `/api/rag/resource/${_id}`);
    expect(read.data.content).toBe(content);
  });
});
