/**
 * What a page of the document list costs (`GET /api/rag/documents`), as the number of documents grows: a page costs what it shows, so
 * ten times the documents cost the same. Only words to look for are looked for in all documents, with the first page.
 *
 *     node bench/document-list.ts
 *
 * Half a minute: it creates 11,000 documents in a service of its own.
 */
import { createBody, createMany, openRunning } from "../test/kb/service/running.ts";
import { median, printTable } from "./report.ts";

const SIZES = [1000, 10_000] as const;
const PAGE = 100;
const ROUNDS = 15;
const STATUSES_TEXT = "document 0";

const running = await openRunning();
let collectionId = "";
for (const size of SIZES) {
  const bodies = Array.from({ length: size }, (_, at) => {
    const title = `Document ${String((at * 7919) % size).padStart(6, "0")}`;
    const metadata = { path: `folder/${at % 50}/${at}.md`, lang: "en" };
    return createBody({ title, content: `Text ${at}.`, owner_id: `of ${size}`, metadata });
  });
  await createMany(running, bodies);
  const { json } = await running.send("GET", "/api/rag/owners");
  collectionId = json.data.owners[0].collectionId;
}

const ask = async (size: number, query: Readonly<Record<string, string>>) => {
  const all = new URLSearchParams({ collectionId, ownerId: `of ${size}`, limit: String(PAGE), ...query });
  const startMs = performance.now();
  const { json, status } = await running.send("GET", `/api/rag/documents?${all.toString()}`);
  if (status !== 200) throw new Error(`answered ${status}: ${json?.message}`);
  return { ms: performance.now() - startMs, data: json.data };
};
const timeOf = async (
  size: number,
  query: Readonly<Record<string, string>>,
  pages: number,
): Promise<number> => {
  let cursor: string | undefined;
  for (let page = 0; page < pages; page++)
    cursor = (await ask(size, { ...query, ...(cursor && { cursor }) })).data.nextCursor;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++)
    times.push((await ask(size, { ...query, ...(cursor && { cursor }) })).ms);
  return median(times);
};

const rows: string[][] = [];
for (const [name, query, pages] of [
  ["first page", {}, 0],
  ["fifth page", {}, 5],
  ["failed only", { status: "error" }, 0],
  ["with words, first page (counts)", { text: STATUSES_TEXT }, 0],
  ["with words, second page", { text: STATUSES_TEXT }, 1],
] as const) {
  const few = await timeOf(SIZES[0], query, pages);
  const many = await timeOf(SIZES[1], query, pages);
  rows.push([name, `${few.toFixed(1)} ms`, `${many.toFixed(1)} ms`, (many / few).toFixed(1)]);
}
printTable([`a page of ${PAGE}`, "of 1,000", "of 10,000", "10,000 / 1,000"], rows);
await running.close();
