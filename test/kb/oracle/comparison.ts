import assert from "node:assert/strict";
import { embeddingText } from "../../../src/kb/embed/embedding-text.ts";
import type { Chance } from "../../crash/chance.ts";
import { nameOf, PARTS, type Client, type Found, type Listed, type PartKey } from "./client.ts";
import {
  exactSearch,
  movedMax,
  reportedScores,
  type ExactChunk,
  type ExactHit,
  type ExactQuery,
} from "./exact-search.ts";
import { someWords } from "./texts.ts";
import { wordSetVector } from "./word-sets.ts";

/** With more chunks a part is searched by estimates of which are worth scoring. */
const EXACT_CHUNKS_MAX = 100;
/** The scale of a stored vector has seven digits. */
const SCORE_ERROR = 1e-5;
const MIX_ERROR = 1e-6;

/**
 * Fails where searches, so many in each part, do not find exactly what the documents say. `salt` is that of the model which
 * must serve.
 */
export async function compareSearches(
  client: Client,
  documents: (part: PartKey) => Promise<readonly Listed[]>,
  salt: string,
  queries: number,
  chance: Chance,
): Promise<void> {
  for (const part of PARTS) {
    const listed = await documents(part);
    const chunks = (await Promise.all(listed.map((document) => chunksOf(client, part, document)))).flat();
    assert(chunks.length <= EXACT_CHUNKS_MAX, `too many chunks for an exact comparison: ${chunks.length}`);
    for (let count = 0; count < queries; count++)
      await compareOne(client, part, { listed, chunks }, salt, chance);
  }
}

/** The chunks of a document, which must be parts of its text and leave out none of its words. */
async function chunksOf(
  client: Client,
  part: PartKey,
  { id, title, content }: Listed,
): Promise<readonly ExactChunk[]> {
  const { status, json, text } = await client.send(part.account, "GET", `/api/rag/resource/${id}/chunks`);
  assert.equal(status, 200, text);
  const given: { id: string; start: number; end: number; headings: string[]; content: string }[] =
    json.data.chunks;
  let covered = 0;
  for (const chunk of given) {
    assert.equal(chunk.content, content.slice(chunk.start, chunk.end), `a chunk of ${id}`);
    assert.equal(content.slice(covered, chunk.start).trim(), "", `left out of the chunks of ${id}`);
    covered = chunk.end;
  }
  assert.equal(content.slice(covered).trim(), "", `left out of the chunks of ${id}`);
  return given.map((chunk) => ({
    id: chunk.id,
    resourceId: id,
    title,
    headings: chunk.headings,
    content: chunk.content,
    embedded: embeddingText({ title, headings: chunk.headings, text: chunk.content }),
  }));
}

/** What is in a part. */
interface Contents {
  readonly listed: readonly Listed[];
  readonly chunks: readonly ExactChunk[];
}

async function compareOne(
  client: Client,
  part: PartKey,
  { listed, chunks }: Contents,
  salt: string,
  chance: Chance,
): Promise<void> {
  const one = chance.happens(0.2) && listed.length > 0 ? chance.pick(listed) : undefined;
  const shelf = one === undefined && chance.happens(0.3) ? chance.below(3) : undefined;
  const shelved = new Set(listed.filter((document) => document.shelf === shelf).map(({ id }) => id));
  const marker = chance.happens(0.2) && listed.length > 0 ? chance.pick(listed).title.split(" ")[0] : "";
  const query = `${someWords(chance, 1 + chance.below(4))} ${marker}`.trim();
  const exact: ExactQuery = {
    query,
    tier: part.tier,
    within: ({ resourceId }) =>
      one === undefined ? shelf === undefined || shelved.has(resourceId) : resourceId === one.id,
    isOneDocument: one !== undefined,
    embed: (text) => wordSetVector(salt, text),
  };
  const asked = { query, ...(shelf !== undefined && { filter: { shelf } }) };
  const name = `${JSON.stringify(asked)} in ${one?.id ?? nameOf(part)}`;
  const all = await client.query(part, { ...asked, top_k: 100 }, one?.id);
  check(name, all, exactSearch(chunks, exact), movedMax(part.tier, chunks.length));
  const topK = 1 + chance.below(10);
  const some = await client.query(part, { ...asked, top_k: topK }, one?.id);
  assert.deepEqual(some, all.slice(0, topK), `${name} with top_k ${topK}`);
}

/** Fails where the results are other ones, or in an order or with scores that do not follow from the texts. */
function check(name: string, results: readonly Found[], expected: readonly ExactHit[], most: number): void {
  assert.deepEqual(
    results.map(({ id }) => id).toSorted(),
    expected.map(({ id }) => id).toSorted(),
    `${name} found other chunks`,
  );
  for (const [at, { id, score }] of results.entries()) {
    const before = results[at - 1]?.score ?? 1;
    assert(score <= before, `${name}: ${id} stands behind one of ${before}, and has ${score}`);
  }
  // What is equal here may differ there in the last digit of a sum, either way: the score then lies between.
  const scoresIn = (order: (a: ExactHit, b: ExactHit) => number): Map<string, number> => {
    const ranking = expected.toSorted((a, b) => roundedMix(b) - roundedMix(a) || order(a, b));
    const scores = reportedScores(
      ranking.map(({ own }) => own),
      most,
    );
    return new Map(ranking.map(({ id }, at) => [id, scores[at] ?? 0]));
  };
  const bounds = [scoresIn((a, b) => b.own - a.own), scoresIn((a, b) => a.own - b.own)];
  const table = results.map(({ id, score }) => {
    const [from = 0, to = 0] = bounds.map((scores) => scores.get(id) ?? 0).toSorted((a, b) => a - b);
    return { id, score, from, to };
  });
  const isRight = table.every(
    ({ score, from, to }) => score > from - SCORE_ERROR && score < to + SCORE_ERROR,
  );
  const hits = new Map(expected.map((hit) => [hit.id, hit]));
  const reported = table.map((row) => Object.assign(row, hits.get(row.id)));
  assert(isRight, `${name} has other scores: ${JSON.stringify(reported, undefined, 1)}`);
}

function roundedMix({ mix }: ExactHit): number {
  return Math.round(mix / MIX_ERROR);
}
