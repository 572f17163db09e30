import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DEFAULT_LIMITS, RATE_DEFAULT } from "../../../src/kb/options.ts";
import { DEFAULT_RETENTION } from "../../../src/kb/resources/housekeeping.ts";
import { KEYS_MAX } from "../../../src/kb/keys/keys.ts";
import { WAITING_MAX } from "../../../src/kb/jobs/job-slots.ts";
import { IMAGES_BYTES_MAX, USER_CHARS_MAX } from "../../../src/wire/chat.ts";
import { IMAGES_MAX } from "../../../src/wire/constants.ts";

const root = join(import.meta.dirname, "../../..");

/** Reads a numeric constant from a source file, so that it need not be exported only for this test. */
function constant(file: string, name: string): number {
  const source = readFileSync(join(root, "src", file), "utf8");
  const found = new RegExp(`^(?:export )?const ${name} = ([\\d_.* ]+);`, "m").exec(source);
  if (found?.[1] === undefined) throw new Error(`src/${file} has no constant ${name} that is a number`);
  const factors = found[1].replaceAll("_", "").split("*").map(Number);
  return factors.reduce((product, factor) => product * factor, 1);
}

function perMinute(name: string): number {
  const source = readFileSync(join(root, "src/kb/answering.ts"), "utf8");
  return Number(new RegExp(`^const ${name}.*perMinute: (\\d+)`, "m").exec(source)?.[1]);
}

const count = (number: number): string => (number < 10_000 ? String(number) : number.toLocaleString("en-US"));
const ofUnits =
  (units: readonly (readonly [string, number])[]) =>
  (amount: number): string => {
    const [unit, size] = units.find(([, each]) => amount % each === 0) ?? ["", 1];
    return `${count(amount / size)} ${unit}`;
  };
const bytes = ofUnits([
  ["GB", 1024 ** 3],
  ["MB", 1024 ** 2],
  ["KB", 1024],
]);
const time = (ms: number): string =>
  ofUnits([
    ["hours", 3_600_000],
    ["minutes", 60_000],
    ["seconds", 1000],
  ])(ms).replace(/^1 (\w+)s$/, "1 $1");

const { contentBytes, requests, bodyBytes, answerBytes, ingests, requestMs } = DEFAULT_LIMITS;
const lineBytes = contentBytes * constant("kb/http/server.ts", "ESCAPES_FACTOR");
const timesFree = constant("lib/shares.ts", "TIMES_FREE");
const documents = constant("kb/jobs/job-slots.ts", "WIDTH");
/** The share of a common bound that one account alone may have. */
const ofOne = (max: number): string => count(Math.floor((max * timesFree) / (timesFree + 1)));
const smallBody = bytes(constant("kb/http/body/json-parser.ts", "SMALL_BODY_BYTES"));
const QUESTIONS = ["WIDTH", "GUESTS_MAX", "LINE_MAX", "LINE_SHARE_MAX", "THREAD_LINE_MAX", "JOBS_MAX"];

/** The expected rows of the table, in order. */
const LIMITS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  "text of a resource, uploaded file": [bytes(contentBytes)],
  "body of a create or update": [bytes(lineBytes)],
  "body of a question": [bytes(constant("kb/http/routes/chat-routes.ts", "CHAT_BODY_BYTES_MAX"))],
  "other JSON bodies": [smallBody],
  "JSON values in a body": [
    count(constant("kb/http/body/json-body.ts", "VALUES_MAX")),
    count(constant("kb/http/body/json-body.ts", "LEVELS_MAX")),
  ],
  "requests in flight": [
    count(requests),
    bytes(bodyBytes),
    smallBody,
    bytes(constant("kb/http/limits/admission.ts", "SHORT_BYTES_MAX")),
  ],
  "share of one account": [],
  "responses in flight": [
    bytes(answerBytes),
    bytes(constant("kb/http/limits/response-memory.ts", "SHORT_BYTES")),
  ],
  "uploads of an account of which more than 250 documents wait after their response": [
    count(constant("kb/http/limits/upload-pace.ts", "BURST")),
    count(constant("kb/http/limits/upload-pace.ts", "PER_SECOND")),
  ],
  "creates, updates and uploads in flight": [count(ingests)],
  "links fetched at once": [
    count(constant("kb/fetch/fetcher.ts", "FETCHES_MAX")),
    count(constant("kb/fetch/fetcher.ts", "GUESTS_MAX")),
    count(constant("kb/fetch/fetcher.ts", "WAITING_MAX")),
    count(constant("kb/fetch/fetcher.ts", "WAITING_SHARE_MAX")),
  ],
  "reads of the store at once": ["READS_WIDTH", "READS_GUESTS", "READS_LINE_MAX"].map((name) =>
    count(constant("kb/store/sqlite/open.ts", name)),
  ),
  "calls of each model by searches at once": ["WIDTH", "GUESTS", "LINE_MAX"].map((name) =>
    count(constant("kb/search/model-turns.ts", name)),
  ),
  "documents cut by `semantic`, and by `agentic`, at once": [
    "MEANING_WIDTH",
    "MEANING_GUESTS",
    "MEANING_LINE_MAX",
    "MEANING_SHARE_MAX",
  ].map((name) => count(constant("kb/ingest/split.ts", name))),
  "long texts that wait to be cut, or for the layout of a table or JSON": [
    count(constant("kb/ingest/split.ts", "LONG_LINE_MAX")),
    count(constant("kb/ingest/split.ts", "LONG_SHARE_MAX")),
    count(constant("kb/ingest/extract/structured-reader.ts", "LINE_MAX")),
    count(constant("kb/ingest/extract/structured-reader.ts", "LINE_SHARE_MAX")),
  ],
  "documents that wait for a process that reads PDFs, images, pages or mails": [
    count(constant("lib/capped/pool.ts", "WAITING_MAX")),
    count(constant("lib/capped/pool.ts", "WAITING_SHARE_MAX")),
  ],
  "time for a request to arrive": [
    time(requestMs),
    time(constant("kb/http/server.ts", "HEADERS_TIMEOUT_MS")),
    time(constant("kb/http/body/json-parser.ts", "SHORT_BODY_MS")),
  ],
  "time a response waits for a client that stops reading": [time(DEFAULT_LIMITS.answerIdleMs)],
  "requests of a key": [count(RATE_DEFAULT.perMinute)],
  "valid keys of an account": [count(KEYS_MAX)],
  connections: [
    count(constant("kb/http/server.ts", "CONNECTIONS_MAX")),
    count(DEFAULT_LIMITS.connectionsPerAddress),
  ],
  "requests of one connection that wait for their answers": [
    count(constant("kb/http/limits/connection-limit.ts", "UNANSWERED_MAX")),
  ],
  "pieces of a chunked body": [
    count(constant("kb/http/limits/small-pieces.ts", "PIECES_FREE")),
    count(constant("kb/http/limits/small-pieces.ts", "PIECE_BYTES_MIN")),
  ],
  "documents that wait after their response": [
    count(constant("kb/resources/new-job.ts", "JOBS_MAX")),
    bytes(constant("kb/resources/new-job.ts", "JOB_CHARS_MAX")),
  ],
  "documents processed at once after their response": [
    count(documents),
    count(WAITING_MAX),
    ofOne(documents),
    ofOne(WAITING_MAX),
  ],
  "webhook endpoints of an account": [count(constant("kb/webhooks/endpoints.ts", "ENDPOINTS_MAX"))],
  "images of a question": [
    bytes(IMAGES_BYTES_MAX),
    count(IMAGES_MAX),
    `${constant("kb/chat/image-reader.ts", "PIXELS_MAX") / 1_000_000} million`,
    `${constant("kb/chat/images.ts", "FETCHES_TIMEOUT_MS") / 1000} s`,
  ],
  question: [count(USER_CHARS_MAX)],
  variables: [
    count(constant("wire/chat.ts", "VARIABLES_MAX")),
    count(constant("wire/chat.ts", "VARIABLE_CHARS_MAX")),
  ],
  "questions answered at once": QUESTIONS.map((name) => count(constant("kb/chat/chat.ts", name))),
  "a thread": [
    count(constant("kb/store/sqlite/chat/chat-writes.ts", "TURNS_MAX")),
    count(constant("kb/store/sqlite/chat/chat-writes.ts", "THREAD_IMAGES_MAX")),
    `${DEFAULT_RETENTION.threadImageDays} days`,
    count(DEFAULT_RETENTION.threadDays),
  ],
  "questions a minute": [count(perMinute("AGENT_RATE")), count(perMinute("THREAD_RATE"))],
};

const AMOUNT = /\d(?:[\d,]*\d)?(?: (?:[KMG]B|million|days|hours|minutes?|seconds|s)\b)?/g;

const [, table = ""] =
  /^## Limits\n\n\| \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)/m.exec(
    readFileSync(join(root, "docs/API.md"), "utf8"),
  ) ?? [];
const rows = [...table.matchAll(/^\| (.+?) \| (.+) \|$/gm)].map(([, name = "", text = ""]) => ({
  name,
  text,
}));

it("the table of limits in docs/API.md has a row for each limit, and no other", () => {
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(LIMITS));
});

it.each(rows)("docs/API.md states the limit of the code: $name", ({ name, text }) => {
  // Numbers in code are statuses and names.
  expect(text.replaceAll(/`[^`]*`/g, "").match(AMOUNT) ?? []).toEqual(LIMITS[name]);
});

it("docs/API.md states one limit for the texts cut by either model", () => {
  expect(constant("kb/ingest/split.ts", "AGENTIC_WIDTH")).toBe(
    constant("kb/ingest/split.ts", "MEANING_WIDTH"),
  );
});

it("docs/API.md states the share of one account correctly", () => {
  const { text = "" } = rows.find(({ name }) => name === "share of one account") ?? {};
  expect(text).toContain("three times what is left free, which is three quarters of all");
  expect(timesFree).toBe(3);
});
