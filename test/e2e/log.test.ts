import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  kbsync,
  list,
  search,
  send,
  startProgram,
  statusOf,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";

const folder = temporaryFolder("log");
const docs = join(folder.path, "docs");
const stateDir = join(folder.path, "state");

/** Stand in documents, queries and bodies, and nowhere else. */
const SECRETS = [
  "quokkasecret",
  "wombatsecret",
  "numbatsecret",
  "dingosecret",
  "bilbysecret",
  "emusecret",
  "kb_notakeyofthisservice",
];

let log = "";
let key = "";
let lines: Record<string, unknown>[] = [];
beforeAll(async () => {
  mkdirSync(docs);
  writeFileSync(join(docs, "note.md"), `# A note\n\nIt holds the quokkasecret.\n`);
  writeFileSync(join(docs, "page.html"), "<html><body><p>Of the wombatsecret.</p></body></html>");
  writeFileSync(join(docs, "broken.pdf"), "%PDF-1.4\n(numbatsecret) this is no PDF");
  writeFileSync(join(docs, "broken.docx"), "PK\u0003\u0004 dingosecret");
  writeFileSync(join(docs, "empty.txt"), "");
  const { child, output } = startProgram(
    ["up", docs, "--tier", "fastest", "--port", "0", "--state-dir", stateDir],
    folder.path,
    {
      KBSYNC_LOG: "debug",
      KBSYNC_LOG_FORMAT: "json",
    },
  );
  await until("the first pass", () => output.stdout.includes(" searchable, "));
  const url = /service +(http:\S+)/.exec(output.stdout)?.[1] ?? "";
  key = readFileSync(join(stateDir, "pauthkey"), "utf8").trim();
  const running = { child, output, stateDir, url, key };

  const { collectionId, ownerId } = await statusOf(docs, stateDir);
  await search(running, { query: "bilbysecret", collection_id: collectionId ?? "", owner_id: ownerId });
  const refused = async (body: string, keySent: string): Promise<void> => {
    const { status } = await send(running, "POST", "/api/rag/resource", { body, key: keySent });
    if (status < 400) throw new Error(`taken with ${status}: ${body}`);
  };
  await refused('{"title": "emusecret", "content": "emusecret" nonsense', key);
  await refused('{"title": {"emusecret": 1}, "content": ["emusecret"]}', key);
  await refused("{}", "kb_notakeyofthisservice");

  writeFileSync(join(docs, "note.md"), `# A note\n\nIt still holds the quokkasecret, and more.\n`);
  await kbsync(["wait", "--state-dir", stateDir]);
  renameSync(join(docs, "note.md"), join(docs, "renamed.md"));
  rmSync(join(docs, "page.html"));
  await until("the delete", async () => (await list(running, collectionId ?? "", ownerId)).length === 1);
  await kbsync(["wait", "--state-dir", stateDir]);
  await stop(running);
  log = output.stderr;
  lines = log
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
});
afterAll(() => folder.remove());

it("never holds a key, or what documents, queries and bodies say", () => {
  expect(lines.length).toBeGreaterThan(20);
  for (const secret of [key, ...SECRETS]) expect(log).not.toContain(secret);
});

it("names source, path, document, action, outcome and duration in every line about a file", () => {
  const about = lines.filter((line) => "path" in line);
  for (const line of about) {
    expect(line).toEqual(
      expect.objectContaining({
        source: docs,
        path: expect.any(String),
        action: expect.any(String),
        outcome: expect.stringMatching(/^(done|refused|skipped|parked)$/),
        durationMs: expect.any(Number),
      }),
    );
    expect(line).toHaveProperty("docId");
  }
  for (const id of about.map(({ docId }) => docId).filter((docId) => docId !== null))
    expect(id).toMatch(/^[0-9a-f]{24}$/);
  const reported = about.map(
    ({ action, path, outcome }) => `${String(action)} ${String(path)} ${String(outcome)}`,
  );
  for (const expected of [
    "create note.md done",
    "update note.md done",
    "create broken.pdf refused",
    "delete page.html done",
  ])
    expect(reported).toContain(expected);
  expect(about.find(({ path, outcome }) => path === "note.md" && outcome === "done")?.["docId"]).toMatch(
    /^[0-9a-f]{24}$/,
  );
});

it("names every refused request by its route and code", () => {
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: "request refused", route: "/api/rag/resource", code: "key_unknown" }),
  );
});
