import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openWeb, type Web } from "../fetch/web.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, begin, filesOf, openAsking } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let endpoint: ModelEndpoint;
let running: Running;
let web: Web;
let nowMs = Date.now();
let png: Buffer;
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  png = await sharp({ create: { width: 40, height: 30, channels: 3, background: "#00c" } })
    .png()
    .toBuffer();
  web = await openWeb({
    "/blue.png": (_request, response) => void response.end(png),
    "/silent.png": () => undefined,
  });
  running = await openAsking(endpoint, { contextTokens: 2048 }, { nowMs: () => nowMs });
}, 60_000);
afterAll(async () => {
  await running.close();
  await endpoint.close();
  await web.close();
});
beforeEach(() => {
  endpoint.behave = () => ({ kind: "answer", text: "Well." });
});
const sent = () => endpoint.requests.at(-1)?.messages ?? [];
const imagesSent = (): number => {
  const content = sent().at(-1)?.content;
  return Array.isArray(content) ? content.filter(({ type }) => type === "image_url").length : 0;
};
/** Of each question, its text and the widths of the images shown with it. */
const widthsSent = async (): Promise<[string, number[]][]> =>
  Promise.all(
    sent()
      .filter(({ role }) => role === "user")
      .map(async ({ content }): Promise<[string, number[]]> => {
        if (!Array.isArray(content)) return [content, []];
        const images = content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
        const bytes = images.map((url) => Buffer.from(url.split(",")[1] ?? "", "base64"));
        const widths = await Promise.all(bytes.map(async (one) => (await sharp(one).metadata()).width));
        return [content.map((part) => (part.type === "text" ? part.text : "")).join(""), widths];
      }),
  );
const words = () => sent().map(({ role, content }) => [role, content]);

describe("a thread", () => {
  it("a thread remembers its messages for its agent only", async () => {
    await ask(running, { user: "I am Ada.", thread_id: "a" });
    await ask(running, { user: "Who am I?", thread_id: "a" });
    expect(words().slice(1)).toEqual([
      ["user", "I am Ada."],
      ["assistant", "Well."],
      ["user", "Who am I?"],
    ]);
    await ask(running, { user: "Who am I?", thread_id: "b" });
    expect(sent()).toHaveLength(2);
    await ask(running, { user: "Who am I?" });
    expect(sent()).toHaveLength(2);
    const key = await running.issueKey("someone-else");
    await running.send("POST", "/api/v2/model/chat/completion", {
      key,
      body: { agent_id: "default", user: "Who am I?", thread_id: "a" },
    });
    expect(sent()).toHaveLength(2);
  });

  it("a thread answers concurrent questions in order, each with the ones before it", async () => {
    await Promise.all(["one", "two", "three"].map((user) => ask(running, { user, thread_id: "order" })));
    expect(words().filter(([role]) => role === "user")).toEqual([
      ["user", "one"],
      ["user", "two"],
      ["user", "three"],
    ]);
  });

  it("a thread leaves out the oldest messages to fit the model's window, and says so", async () => {
    const long = "word ".repeat(500);
    for (const user of ["first", "second", "third"])
      await ask(running, { user: user + long, thread_id: "long" });
    const { json } = await ask(running, { user: "And now?", thread_id: "long" });
    expect(
      words()
        .filter(([role]) => role === "user")
        .map(([, text]) => JSON.stringify(text).slice(1, 7)),
    ).toEqual(["thirdw", "And no"]);
    expect(json.response.data.annotations).toEqual([{ type: "messages_left_out", count: 4 }]);
    const over = await ask(running, { user: "x".repeat(6000), thread_id: "long" });
    expect(over).toMatchObject({ status: 413, json: { error: { code: "text_too_large", field: "user" } } });
  });

  it(
    "a thread shows its images, uploaded or named once, to later questions for 7 days",
    { timeout: 60_000 },
    async () => {
      const form = fileForm(await sharp(png).resize(10, 10).png().toBuffer(), "small.png");
      form.append("agent_id", "default");
      form.append("thread_id", "seen");
      const upload = await running.send("POST", "/files/upload", { body: form });
      expect(upload.status).toBe(200);
      const blue = web.url("/blue.png").href;
      await ask(running, { user: "Colour?", thread_id: "seen", user_urls: [{ type: "image", url: blue }] });
      expect(imagesSent()).toBe(2);
      const { json } = await ask(running, { user: "And its size?", thread_id: "seen" });
      expect(imagesSent()).toBe(2);
      expect(json.response.data.images).toContain(upload.json.file_url);
      // Fetched once; later questions use the stored copy.
      expect(web.requests).toHaveLength(1);
      await ask(running, { user: "What?", thread_id: "another" });
      expect(imagesSent()).toBe(0);
      nowMs += 7 * DAY_MS + 1000;
      await ask(running, { user: "Still there?", thread_id: "seen" });
      expect(imagesSent()).toBe(0);
      expect(sent().length).toBeGreaterThan(2);
    },
  );

  it("a thread shows each image with its question, in order", async () => {
    const wide = await openAsking(endpoint, { contextTokens: 32_000 });
    const thread = { agent_id: "default", thread_id: "ordered" };
    const upload = async (width: number, fields: Readonly<Record<string, string>> = {}): Promise<string> => {
      const form = fileForm(await sharp(png).resize(width, 10).png().toBuffer(), `${width}.png`);
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      return (await wide.send("POST", "/files/upload", { body: form })).json.file_url;
    };
    const named = (...urls: string[]) => ({ user_urls: urls.map((url) => ({ type: "image", url })) });
    const [one, two, four] = [await upload(11), await upload(12), await upload(14)];
    await ask(wide, { ...thread, user: "These?", ...named(two, one) });
    await ask(wide, { ...thread, user: "Sure?" });
    const three = await upload(13, thread);
    await ask(wide, { ...thread, user: "And?", ...named(four) });
    const { json } = await ask(wide, { ...thread, user: "All?" });
    expect(json.response.data.images).toEqual([two, one, three, four]);
    expect(await widthsSent()).toEqual([
      ["These?", [12, 11]],
      ["Sure?", []],
      ["And?", [13, 14]],
      ["All?", []],
    ]);
    // An image that is named again belongs to the question that names it.
    await ask(wide, { ...thread, user: "Again?", ...named(two) });
    expect(await widthsSent()).toEqual([
      ["These?", [11]],
      ["Sure?", []],
      ["And?", [13, 14]],
      ["All?", []],
      ["Again?", [12]],
    ]);
    await wide.close();
  }, 60_000);

  it("a thread remembers nothing of a failed answer", async () => {
    const before = await filesOf(running);
    endpoint.behave = () => ({ kind: "fail", status: 400 });
    const user_urls = [{ type: "image", url: web.url("/blue.png").href }];
    expect((await ask(running, { user: "Colour?", thread_id: "failed", user_urls })).status).toBe(502);
    expect(await filesOf(running)).toEqual(before);
    endpoint.behave = () => ({ kind: "answer", text: "Well." });
    await ask(running, { user: "And?", thread_id: "failed" });
    expect([sent().length, imagesSent()]).toEqual([2, 0]);
  });
});

describe("a client that goes away", () => {
  it("a client that disconnects aborts the fetch of its image", async () => {
    const leaving = new AbortController();
    const seen = web.requests.length;
    const user_urls = [{ type: "image", url: web.url("/silent.png").href }];
    const gone = begin(running, { user: "Colour?", user_urls }, leaving.signal);
    await vi.waitFor(() => expect(web.requests.length).toBe(seen + 1), { timeout: 10_000 });
    leaving.abort();
    await expect(gone).rejects.toThrow(/abort/i);
    // Long before the timeout of a fetch.
    await vi.waitFor(() => expect(web.requests.at(-1)?.socket.destroyed).toBe(true), { timeout: 10_000 });
  });
});

it("remembers nothing of an answer whose client went away before it was stored", async () => {
  const held = Promise.withResolvers<void>();
  let reads = 0;
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        thread: async (query) => {
          reads += 1;
          if (reads === 1) await held.promise;
          return store.records.thread(query);
        },
      },
    });
  // Without a model, nothing between here and the store checks for a disconnect.
  const plain = await openAsking(undefined, {}, { wrapStore });
  const leaving = new AbortController();
  const gone = begin(plain, { user: "First?", thread_id: "left" }, leaving.signal);
  await vi.waitFor(() => expect(reads).toBe(1), { timeout: 10_000 });
  leaving.abort();
  await expect(gone).rejects.toThrow(/abort/i);
  // Data after the end of a connection is read after it.
  for (let times = 0; times < 3; times += 1) await plain.send("GET", "/v1/me");
  held.resolve();
  expect((await ask(plain, { user: "Second?", thread_id: "left" })).status).toBe(200);
  const { id: accountId } = await plain.store.records.ensureAccount("local");
  const query = { accountId, agentId: "default", threadId: "left", turnsMax: 9, charsMax: 9999 };
  const memory = await plain.store.records.thread({ ...query, imagesMax: 9, imagesSinceIso: "" });
  expect(memory.turns.map(({ user }) => user)).toEqual(["Second?"]);
  await plain.close();
});

describe("an answer that was stored", () => {
  it("returns a stored answer although its image cannot be moved, and does not lose the image", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-keep-"));
    // The row is written by then; a folder at the target path prevents the move.
    const wrapStore = (store: Store): Store =>
      withMethods(store, {
        records: {
          addTurn: async (turn) => {
            for (const { token } of turn.files)
              await mkdir(join(stateDir, "uploads", token, "in the way"), { recursive: true });
            return store.records.addTurn(turn);
          },
        },
      });
    const blocked = await openAsking(endpoint, {}, { stateDir, wrapStore });
    const user_urls = [{ type: "image", url: web.url("/blue.png").href }];
    try {
      const answer = await ask(blocked, { user: "Colour?", thread_id: "kept", user_urls });
      expect(answer.status).toBe(200);
      expect(blocked.log()).toContain("was not moved out of incoming");
      expect(await filesOf(blocked)).toEqual({ stored: 1, incoming: 1 });
    } finally {
      await blocked.close();
      await rm(stateDir, { recursive: true, force: true });
    }
  });
});
