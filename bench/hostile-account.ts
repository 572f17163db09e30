/**
 * One account at full load beside another: the victim's searches, and a PDF of its own, while a hostile account does what it
 * can, against the same in the same run while nobody else is there. The service, the victim and the hostile client have a
 * process each. A real hostile client is elsewhere and takes no processor time from the service: this one has the lowest
 * priority and prepares its bodies before it starts. How many requests it gets answered is part of the result, because a
 * client that is starved attacks nobody. The parts, without and with it, take turns; of each the round with the least p99
 * counts, which other work on the machine disturbed least.
 *
 *     node bench/hostile-account.ts [seconds of each part=10] [rounds=3] [attacks, separated by commas=all]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { Agent, FormData, request, setGlobalDispatcher } from "undici";
import { ALL_SCOPES } from "../src/kb/keys/keys.ts";
import { openService } from "../src/kb/service.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import { temporaryFolder } from "../test/e2e/program.ts";
import {
  buildPdf,
  dashedPdf,
  nestedFormsPdf,
  repeatedPagePdf,
  textPage,
} from "../test/kb/ingest/extract/pdf-fixture.ts";
import { printTable, quantile } from "./report.ts";

const SELF = fileURLToPath(import.meta.url);
/** Most times the quiet value that the victim's p99 may be. */
const RATIO_MAX = 4;
/** Between two searches of the victim. */
const PAUSE_MS = 20;
const DOCUMENTS = 300;

/** Searches of the hostile account at a time: most of the connections that one address may have. */
const SEARCHES = 400;
/** Creates of the hostile account at a time, and the length of their texts. */
const LARGE_CREATES = 40;
const LARGE_CHARS = 1_500_000;

// No longer than the service does, however busy the machine.
setGlobalDispatcher(new Agent({ keepAliveTimeout: 500, keepAliveMaxTimeout: 500, connections: SEARCHES }));

/** Readers of each kind at a time, and documents that they read of. */
const READERS = 40;
const CHANGES = 5000;

type Attack = (url: string, key: string) => Promise<void>;

/** Requests of the hostile client that were answered. */
let answered = 0;

const headers = (key: string, more: object = {}) => ({ pauthkey: key, ...more });
const json = { "content-type": "application/json" };

/** Does something again and again, so many at a time, whatever comes of it. */
async function forever(width: number, work: () => Promise<unknown>): Promise<void> {
  const lane = async (): Promise<never> => {
    for (;;) {
      // A refusal comes at once: as fast as an attacker without delays, but not a loop that only burns its own core.
      await work().catch(() => undefined);
      await sleep(5);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** Sends the head of a request and some of its body, and no more; resolves when the service gives up. */
async function unfinished(url: string, head: string, body = ""): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  socket.on("error", () => undefined).resume();
  socket.write(`${head}\r\n\r\n${body}`);
  await once(socket, "close");
}

async function post(
  url: string,
  path: string,
  key: string,
  body: string | Buffer | FormData,
  more: object = {},
) {
  const answer = await request(url + path, { method: "POST", headers: headers(key, more), body });
  answered += 1;
  return (await answer.body.json()) as { file_url?: string; data?: unknown }; // what these operations answer
}

function form(pdf: Buffer): FormData {
  const data = new FormData();
  data.append("file", new Blob([new Uint8Array(pdf)]), "a.pdf");
  return data;
}

const BOUNDARY = "b";

/** A form with a file as bytes: to encode a `FormData` for each request takes the client as long as the service. */
function encodedForm(pdf: Buffer): Buffer {
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), pdf, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)]);
}

const record = (more: object): string =>
  JSON.stringify({ title: "a", description: "b", collection_details: "fastest", ...more });

/** Makes the documents of an account. */
async function fill(url: string, key: string, ownerId: string): Promise<void> {
  for (let at = 0; at < DOCUMENTS; at += 1) {
    const content = `The tide of harbour ${at} rises twice a day. `.repeat(20);
    await post(url, "/api/rag/resource", key, record({ title: `${at}`, owner_id: ownerId, content }), json);
  }
}

/** Returns the collection of an account that holds these documents. */
async function collectionOf(url: string, key: string): Promise<string> {
  const answer = await request(`${url}/api/rag/collections`, { headers: headers(key) });
  const { data } = (await answer.body.json()) as {
    data: { collections: { _id: string; details: string }[] };
  }; // API.md
  return data.collections.find(({ details }) => details === "fastest")?._id ?? "";
}

/** The body of a search, whose words depend on the number. */
const searchBody = (collectionId: string, ownerId: string, number: number): string =>
  JSON.stringify({
    collection_id: collectionId,
    owner_id: ownerId,
    query: `tide of harbour ${number % DOCUMENTS}`,
    top_k: 5,
  });

/** A text whose words differ, as those of a book do. */
function longText(): string {
  const sentences: string[] = [];
  for (let chars = 0, at = 0; chars < LARGE_CHARS; at += 1) {
    const sentence = `Ship ${at % 7919} left quay ${at % 613} for port${at % 4001} at the turn of tide${at}. `;
    sentences.push(sentence);
    chars += sentence.length;
  }
  return sentences.join("");
}

const ATTACKS: Readonly<Record<string, { readonly words: string; readonly run: Attack }>> = {
  idle: {
    words: "480 connections with creates, searches and uploads that never end",
    run: async (url, key) => {
      const head = (path: string, type: string, length: number): string =>
        `POST ${path} HTTP/1.1\r\nhost: a\r\npauthkey: ${key}\r\ncontent-type: ${type}\r\ncontent-length: ${length}`;
      await Promise.all([
        forever(80, () => unfinished(url, head("/api/rag/resource", "application/json", 3e7), "{")),
        forever(200, () => unfinished(url, head("/rag/query", "application/json", 60_000))),
        forever(200, () =>
          unfinished(
            url,
            head("/image/processing/upload", "multipart/form-data; boundary=b", 3e7),
            "--b\r\n",
          ),
        ),
      ]);
    },
  },
  pdfs: {
    words: "hostile PDFs, 16 at a time and hundreds queued",
    run: async (url, key) => {
      const forms = [dashedPdf(), nestedFormsPdf(), repeatedPagePdf(1000), repeatedPagePdf(200_000)].map(
        encodedForm,
      );
      const multipart = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
      let at = 0;
      await forever(16, async () => {
        const body = forms[(at += 1) % forms.length] ?? Buffer.alloc(0);
        const { file_url: fileUrl } = await post(url, "/image/processing/upload", key, body, multipart);
        await post(url, "/api/rag/resource", key, record({ url: fileUrl }), {
          ...json,
          prefer: "respond-async",
        });
      });
    },
  },
  searches: {
    words: `${SEARCHES} searches at a time`,
    run: async (url, key) => {
      const collectionId = await collectionOf(url, key);
      let number = 0;
      await forever(SEARCHES, () =>
        post(url, "/rag/query", key, searchBody(collectionId, "hostile", (number += 1)), json),
      );
    },
  },
  feed: {
    words: `${READERS} readers each of a stream of changes, a page of them and a list, of ${CHANGES} documents`,
    run: async (url, key) => {
      for (let at = 0; at < CHANGES; at += 1)
        await post(
          url,
          "/api/rag/resource",
          key,
          record({ title: `${at}`, owner_id: "feed", content: `Change ${at}` }),
          json,
        );
      const collectionId = await collectionOf(url, key);
      const read = async (path: string, more: object = {}): Promise<void> => {
        // Streams have no end: as many bytes as the feed has.
        const answer = await request(url + path, { headers: headers(key, more) });
        let bytes = 0;
        for await (const piece of answer.body) if ((bytes += (piece as Buffer).length) > CHANGES * 250) break;
        answered += 1;
      };
      await Promise.all([
        forever(READERS, () => read("/v1/events", { accept: "text/event-stream" })),
        forever(READERS, () =>
          read(`/api/rag/resource/by-collection?collection_id=${collectionId}&owner_id=feed`),
        ),
      ]);
    },
  },
  creates: {
    words: `${LARGE_CREATES} creates at a time of ${LARGE_CHARS / 1e6} MB each`,
    run: async (url, key) => {
      const body = Buffer.from(record({ content: longText() }));
      await forever(LARGE_CREATES, () => post(url, "/api/rag/resource", key, body, json));
    },
  },
};

/** A service, and a key of each of two accounts. */
async function serve(stateDir: string): Promise<void> {
  const service = await openService({
    stateDir,
    store: await openSqliteStore({ path: join(stateDir, "kb.sqlite") }),
    port: 0,
    log: pino({ level: "silent" }),
    version: "bench",
  });
  const grant = { name: "bench", scopes: ALL_SCOPES, createdAt: new Date().toISOString(), expiresAt: null };
  const keys = [];
  for (const account of ["victim", "hostile"]) keys.push(await service.issueKey({ account, ...grant }));
  const { url } = await service.start();
  // An exit that takes the processes along that read documents.
  process.once("SIGTERM", () => process.exit());
  process.stdout.write(`${JSON.stringify([url, ...keys])}\n`);
}

interface Measured {
  readonly searchMs: readonly number[];
  readonly pdfMs: number;
  /** Requests of the hostile client that were answered in a second. */
  readonly hostilePerSecond?: number;
}

/** The victim's searches for so long, and one PDF of its own meanwhile. */
async function measure(url: string, key: string, collectionId: string, seconds: number): Promise<Measured> {
  const searchMs: number[] = [];
  const endMs = performance.now() + seconds * 1000;
  let number = 0;
  const pdf = (async () => {
    const startMs = performance.now();
    const { file_url: fileUrl } = await post(
      url,
      "/image/processing/upload",
      key,
      form(buildPdf([textPage(["good words"])])),
    );
    const { data } = await post(url, "/api/rag/resource", key, record({ url: fileUrl }), json);
    if (data === undefined) throw new Error("the victim's PDF was refused");
    return performance.now() - startMs;
  })();
  // Looked at below; until then it must not end the program.
  pdf.catch(() => undefined);
  while (performance.now() < endMs) {
    number += 1;
    const body = searchBody(collectionId, "victim", number);
    const startMs = performance.now();
    const answer = await request(`${url}/rag/query`, { method: "POST", headers: headers(key, json), body });
    await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`the victim's search was answered ${answer.statusCode}`);
    searchMs.push(performance.now() - startMs);
    await sleep(PAUSE_MS);
  }
  return { searchMs, pdfMs: await pdf };
}

/** The part that was disturbed least. */
function leastDisturbed(parts: readonly Measured[]): Measured {
  const p99 = ({ searchMs }: Measured): number => quantile(searchMs, 0.99);
  return parts.reduce((best, part) => (p99(part) < p99(best) ? part : best));
}

/** The victim's measurements beside an attack. */
async function beside(
  name: string,
  url: string,
  hostileKey: string,
  work: () => Promise<Measured>,
): Promise<Measured> {
  const attacker = spawn(process.execPath, [SELF, "attack", name, url, hostileKey], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  let hostileAnswered = 0;
  attacker.on("message", (count) => (hostileAnswered = Number(count)));
  const gone = once(attacker, "exit");
  try {
    if (attacker.pid !== undefined) setPriority(attacker.pid, constants.priority.PRIORITY_LOW);
    await sleep(3000);
    const [fromMs, from] = [performance.now(), hostileAnswered];
    const measured = await work();
    const seconds = (performance.now() - fromMs) / 1000;
    return { ...measured, hostilePerSecond: (hostileAnswered - from) / seconds };
  } finally {
    attacker.kill("SIGKILL");
    await gone;
    await sleep(2000);
  }
}

/** Attacks, and reports how many requests were answered. */
async function attack(name: string, url: string, key: string): Promise<void> {
  setInterval(() => process.send?.(answered), 100);
  await ATTACKS[name]?.run(url, key);
}

async function bench(seconds: number, rounds: number, attacks: readonly string[]): Promise<void> {
  const state = temporaryFolder("bench-hostile");
  const service = spawn(process.execPath, [SELF, "serve", state.path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface(service.stdout), "line")) as [string]; // it prints nothing else
  const [url, victim, hostile] = JSON.parse(line) as [string, string, string]; // printed above
  try {
    await fill(url, victim, "victim");
    await fill(url, hostile, "hostile");
    const collectionId = await collectionOf(url, victim);
    await measure(url, victim, collectionId, 2); // warm
    const rows: string[][] = [];
    let held = true;
    for (const [name, { words }] of Object.entries(ATTACKS)) {
      if (!attacks.includes(name)) continue;
      const quietParts: Measured[] = [];
      const loudParts: Measured[] = [];
      const part = () => measure(url, victim, collectionId, seconds);
      for (let round = 0; round < rounds; round += 1) {
        quietParts.push(await part());
        loudParts.push(await beside(name, url, hostile, part));
      }
      const quiet = leastDisturbed(quietParts);
      const loud = leastDisturbed(loudParts);
      const at = (share: number) =>
        [quantile(quiet.searchMs, share), quantile(loud.searchMs, share)] as const;
      const [p50, p99] = [at(0.5), at(0.99)];
      const ratio = p99[1] / p99[0];
      held &&= ratio <= RATIO_MAX;
      const ms = ([before, during]: readonly [number, number]): string =>
        `${before.toFixed(1)} / ${during.toFixed(1)} ms`;
      rows.push([
        words,
        ms(p50),
        ms(p99),
        ratio.toFixed(2),
        ratio <= RATIO_MAX ? "held" : "NOT held",
        ms([quiet.pdfMs, loud.pdfMs]),
        (loud.hostilePerSecond ?? 0).toFixed(0),
      ]);
    }
    printTable(
      [
        "hostile account",
        "search p50, quiet / beside it",
        "search p99",
        "ratio of p99",
        `bound ${RATIO_MAX}`,
        "a PDF of one page",
        "hostile requests answered a second",
      ],
      rows,
    );
    if (!held) process.exitCode = 1;
  } finally {
    service.kill("SIGTERM");
    await once(service, "exit");
    state.remove();
  }
}

const [mode, first = "", url = "", key = ""] = process.argv.slice(2);
if (mode === "serve") await serve(first);
else if (mode === "attack") await attack(first, url, key);
else {
  const attacks = url === "" ? Object.keys(ATTACKS) : url.split(",");
  await bench(Number(mode ?? 10), Number(first === "" ? 3 : first), attacks);
}
