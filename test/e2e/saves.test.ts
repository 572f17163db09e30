import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tier } from "../../src/wire/primitives.ts";
import type { ResourceRecord } from "../../src/wire/resource.ts";
import { STILL_READ } from "../../src/wire/constants.ts";
import { buildPdf, type PageContent, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import { picture, scannedPage } from "../kb/ingest/extract/picture-fixture.ts";
import {
  agreed,
  list,
  type Running,
  search,
  startUp,
  statusOf,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";

const temporary = temporaryFolder("saves");
let scan: PageContent;
beforeAll(async () => {
  scan = await scannedPage(await picture(["The lighthouse keeper counted", "seventeen ships before noon."]));
});
afterAll(() => temporary.remove());

/** A folder that a running program syncs. */
interface Synced {
  readonly folder: string;
  readonly state: string;
  readonly running: Running;
  /** Returns the folder's documents, as the service lists them; none before the collection exists. */
  readonly documents: () => Promise<readonly ResourceRecord[]>;
  readonly finds: (word: string) => Promise<boolean>;
}

/** Starts the program on a folder with these files. */
async function sync(
  name: string,
  tier: Tier,
  files: readonly (readonly [string, Uint8Array])[] = [],
): Promise<Synced> {
  const folder = join(temporary.path, name, "docs");
  const state = join(temporary.path, name, "state");
  mkdirSync(folder, { recursive: true });
  for (const [file, bytes] of files) writeFileSync(join(folder, file), bytes);
  const running = await startUp(["up", folder, "--tier", tier, "--port", "0"], state);
  const scope = async () => {
    const { collectionId, ownerId } = await statusOf(folder, state);
    return { collectionId: collectionId ?? undefined, ownerId };
  };
  return {
    folder,
    state,
    running,
    documents: async () => {
      const { collectionId, ownerId } = await scope();
      return collectionId === undefined ? [] : list(running, collectionId, ownerId);
    },
    finds: async (word) => {
      const { collectionId, ownerId } = await scope();
      if (collectionId === undefined) return false;
      const { results } = await search(running, {
        query: word,
        collection_id: collectionId,
        owner_id: ownerId,
      });
      return results.some(({ payload }) => payload.content.includes(word));
    },
  };
}

const isWhole = ({ metadata }: ResourceRecord): boolean =>
  metadata?.status === "chunked" && metadata.warning?.endsWith(STILL_READ) !== true;

describe("a document that changes while it is read", () => {
  let synced: Synced;
  beforeAll(async () => {
    synced = await sync("changing", "fastest");
  });
  afterAll(() => stop(synced.running));

  it("a PDF that a scanner writes in pieces ends with its last version found", async () => {
    const words = ["quokkapage", "numbatpage", "bilbypage", "dunnartpage", "potoroopage"];
    const pdf = buildPdf(words.map((word) => textPage([`The ${word} of the report.`])));
    const path = join(synced.folder, "report.pdf");
    writeFileSync(path, "");
    const pieces = 5;
    for (let piece = 0; piece < pieces; piece++) {
      const [from, to] = [piece, piece + 1].map((at) => Math.floor((pdf.length * at) / pieces));
      appendFileSync(path, pdf.subarray(from, to));
      // Long enough that some of the incomplete versions are sent.
      await sleep(1200);
    }
    for (const word of words) await until(`a search that finds ${word}`, () => synced.finds(word));
    await agreed(synced.folder, synced.state, 1);
    const [document, ...others] = await synced.documents();
    expect(others).toEqual([]);
    expect(document).toMatchObject({ metadata: { status: "chunked" } });
    for (const word of words) expect(document?.content).toContain(word);
  });

  it("a document that is saved four times in five seconds ends with its last version, and none stays queued", async () => {
    const path = join(synced.folder, "minutes.pdf");
    const words = ["firstminutes", "secondminutes", "thirdminutes", "lastminutes"];
    for (const word of words) {
      // Reading the scanned pages takes longer than the time to the next save.
      writeFileSync(path, buildPdf([textPage([`These are the ${word}.`]), scan, scan, scan]));
      await sleep(1250);
    }
    await until("a search that finds the last version", () => synced.finds("lastminutes"));
    const documents = await until("documents that are read whole", async () => {
      const listed = await synced.documents();
      return listed.every(isWhole) && listed;
    });
    const contents = documents.map(({ content }) => content ?? "").filter((text) => text.includes("minutes"));
    expect(contents).toHaveLength(1);
    expect(contents[0]).toContain("lastminutes");
    expect(contents[0]).toMatch(/seventeen ships/i);
    await agreed(synced.folder, synced.state);
    expect(await synced.finds("firstminutes")).toBe(false);
  });
});

describe("a first sync of scans", () => {
  let synced: Synced;
  beforeAll(async () => {
    const scans = Array.from(
      { length: 40 },
      (_, index) =>
        [`scan-${index}.pdf`, buildPdf([scan, scan, scan], { author: `Scanner ${index}` })] as const,
    );
    synced = await sync("backlog", "moderate", scans);
  });
  afterAll(() => stop(synced.running));

  it("a text saved meanwhile is found by its words while scans still wait to be read", async () => {
    const queued = async (): Promise<readonly ResourceRecord[]> =>
      (await synced.documents()).filter(({ metadata }) => metadata?.status === "queued");
    await until("scans that wait", async () => (await queued()).length > 20);
    writeFileSync(join(synced.folder, "note.md"), "# Note\n\nThe wombatnote was just saved.\n");
    await until("a search that finds the note", () => synced.finds("wombatnote"));
    expect((await queued()).length).toBeGreaterThan(0);
  });
});
