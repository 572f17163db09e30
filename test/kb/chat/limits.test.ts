import { randomBytes } from "node:crypto";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { openWeb, type Page, type Web } from "../fetch/web.ts";
import { fileForm, queuesOf, type Answered, type Running } from "../service/running.ts";
import { AgentConfig } from "../../../src/wire/agent.ts";
import { ask, CHAT, filesOf, openAsking } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

// Every limit of a question, an agent and an upload's fields: a value at the limit is accepted, one above it is refused with the
// field's name and leaves nothing. Limits of bytes and pixels are in images.test.ts.

/** Each image is read in a separate process. */
const SLOW = { timeout: 120_000 };
const BODY_BYTES_MAX = 6 * 1024 * 1024;
const JOBS_MAX = 1000;

let running: Running;
let web: Web;
let admin: string;
const pages: Record<string, Page> = {};
/** Until then the thread `line` is not read, and its first question not answered. */
const held = Promise.withResolvers<void>();
beforeAll(async () => {
  const png = await sharp({ create: { width: 4, height: 4, channels: 3, background: "#0c0" } })
    .png()
    .toBuffer();
  web = await openWeb(pages);
  const show: Page = (_request, response) => void response.end(png);
  for (let at = 0; at < 21; at++) pages[`/${at}.png`] = show;
  pages[pathOf(8192)] = show;
  // Questions with a webhook stay in the queue, where the tests count them.
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        thread: async (query) => {
          if (query.threadId === "line") await held.promise;
          return store.records.thread(query);
        },
      },
      queue: { due: async (query) => (query.queue === "chat" ? [] : store.queue.due(query)) },
    });
  const agents = [
    { id: "filled", systemPrompt: "{{a}}{{b}}", knowledge: [] },
    { id: text(64), systemPrompt: "", knowledge: [] },
  ];
  running = await openAsking(undefined, { agents }, { wrapStore, ocr: { pagesMax: 0 } });
  admin = await running.issueKey("local", ["admin"]);
}, 60_000);
afterAll(async () => {
  await running.close();
  await web.close();
});

/** A path that makes an address on the web server so long. */
function pathOf(chars: number): string {
  return `/${"p".repeat(chars - web.url("/").href.length)}`;
}
const text = (chars: number): string => "a".repeat(chars);
const image = (path: string) => ({ type: "image", url: web.url(path).href });
const images = (count: number) => Array.from({ length: count }, (_, at) => image(`/${at}.png`));
const numbered = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, "1"]));
const hook = (chars: number): string => {
  const start = "https://receiver.example/";
  return start + text(chars - start.length);
};
const HOOK = hook(100);
const secret = (bytes: number): string => `whsec_${randomBytes(bytes).toString("base64")}`;
const original = (cred: object) => ({ settings: { response_format: { type: "webhook", cred } } });

/** What there is of whatever a request could leave behind. */
async function stored(): Promise<object> {
  const [files, queues, agents] = await Promise.all([
    filesOf(running),
    queuesOf(running),
    running.send("GET", "/v1/agents", { key: admin }),
  ]);
  return { files, queues, agents: agents.json.data };
}

async function expectRefused(send: () => Promise<Answered>, status: number, field?: string): Promise<void> {
  const before = await stored();
  const { status: got, json } = await send();
  expect({ status: got, success: json.success, field: json.error.field }).toEqual({
    status,
    success: false,
    field,
  });
  expect(await stored()).toEqual(before);
}

describe("a question at a bound is taken, and refused above it", SLOW, () => {
  it.each<[string, (more: 0 | 1) => object, string, number?]>([
    ["user", (more) => ({ user: text(200_000 + more) }), "user"],
    ["thread_id", (more) => ({ thread_id: text(256 + more) }), "thread_id"],
    ["variables", (more) => ({ variables: numbered(200 + more) }), "variables"],
    ["a variable's name", (more) => ({ variables: { [text(200 + more)]: 1 } }), `variables.${text(201)}`],
    ["a variable's value", (more) => ({ variables: { a: text(20_000 + more) } }), "variables.a"],
    [
      "user, filled in",
      (more) => ({ user: "{{a}}".repeat(10) + text(more), variables: { a: text(20_000) } }),
      "variables",
      413,
    ],
    [
      "the agent's prompt, filled in",
      (more) => ({ agent_id: "filled", variables: { a: text(16_000), b: text(16_000 + more) } }),
      "variables",
      413,
    ],
    ["user_urls", (more) => ({ user_urls: images(20 + more) }), "user_urls"],
    ["url", (more) => ({ user_urls: [image(pathOf(8192 + more))] }), "user_urls[0].url"],
    ["webhook.url", (more) => ({ webhook: { url: hook(2048 + more) } }), "webhook.url"],
    [
      "webhook.headers",
      (more) => ({ webhook: { url: HOOK, headers: numbered(20 + more) } }),
      "webhook.headers",
    ],
    [
      "a header's name",
      (more) => ({ webhook: { url: HOOK, headers: { [text(200 + more)]: "1" } } }),
      `webhook.headers.${text(201)}`,
    ],
    [
      "a header's value",
      (more) => ({ webhook: { url: HOOK, headers: { a: text(4096 + more) } } }),
      "webhook.headers.a",
    ],
    ["webhook.secret", (more) => ({ webhook: { url: HOOK, secret: secret(64 + more) } }), "webhook.secret"],
    [
      "webhook.secret, at least",
      (more) => ({ webhook: { url: HOOK, secret: secret(24 - more) } }),
      "webhook.secret",
    ],
    ["cred.url", (more) => original({ url: hook(2048 + more) }), "settings.response_format.cred.url"],
    [
      "cred.headers",
      (more) => original({ url: HOOK, headers: numbered(20 + more) }),
      "settings.response_format.cred.headers",
    ],
  ])(
    "accepts a question at the limit of %s, and refuses it above",
    async (_name, change, field, status = 400) => {
      const taken = await ask(running, { user: "Hello", ...change(0) });
      expect(taken.json.error).toBeUndefined();
      await expectRefused(() => ask(running, { user: "Hello", ...change(1) }), status, field);
    },
  );

  it("accepts a question at the limit of the body, and refuses it above", async () => {
    const send = (bytes: number): Promise<Answered> => {
      const body = JSON.stringify({ agent_id: "default", user: "Hello" });
      const headers = { "content-type": "application/json" };
      return running.send("POST", CHAT, { body: body.padEnd(bytes, " "), headers });
    };
    expect((await send(BODY_BYTES_MAX)).status).toBe(200);
    await expectRefused(() => send(BODY_BYTES_MAX + 1), 413);
  });
});

describe("an agent at a bound is made, and refused above it", () => {
  it.each<[string, (more: 0 | 1) => object, string]>([
    ["id", (more) => ({ id: text(64 + more) }), "id"],
    ["systemPrompt", (more) => ({ systemPrompt: text(32_000 + more) }), "systemPrompt"],
    ["model", (more) => ({ model: text(200 + more) }), "model"],
    ["fallbackModel", (more) => ({ fallbackModel: text(200 + more) }), "fallbackModel"],
    ["knowledge", (more) => ({ knowledge: Array.from({ length: 8 + more }, () => "a") }), "knowledge"],
    ["owner", (more) => ({ knowledge: [text(256 + more)] }), "knowledge[0]"],
    ["owner of a tier", (more) => ({ knowledge: [`moderate/${text(256 + more)}`] }), "knowledge[0]"],
  ])("accepts an agent at the limit of %s, and refuses it above", (_name, change, field) => {
    expect(AgentConfig.safeParse({ id: "one", ...change(0) }).success).toBe(true);
    const refused = AgentConfig.safeParse({ id: "one", ...change(1) });
    expect(refused.error?.issues[0]?.path.join(".").replaceAll(/\.(\d+)/g, "[$1]")).toBe(field);
  });
});

describe("an upload's fields", SLOW, () => {
  it.each<[string, (more: 0 | 1) => Record<string, string>, string]>([
    ["agent_id", (more) => ({ agent_id: text(64 + more), thread_id: "t" }), "agent_id"],
    ["thread_id", (more) => ({ agent_id: "default", thread_id: text(256 + more) }), "thread_id"],
  ])("accepts an upload at the limit of %s, and refuses it above", async (_name, fields, field) => {
    const png = sharp({ create: { width: 4, height: 4, channels: 3, background: "#00c" } }).png();
    const bytes = await png.toBuffer();
    const send = (more: 0 | 1): Promise<Answered> => {
      const form = fileForm(bytes, "a.png");
      for (const [name, value] of Object.entries(fields(more))) form.append(name, value);
      return running.send("POST", "/files/upload", { body: form });
    };
    expect((await send(0)).status).toBe(200);
    await expectRefused(() => send(1), 400, field);
  });
});

it("a thread accepts one running question and 16 waiting ones, and refuses one more", SLOW, async () => {
  const asked = Array.from({ length: 18 }, () => ask(running, { user: "Hello", thread_id: "line" }));
  const refused = await Promise.race(asked);
  expect(refused).toMatchObject({
    status: 503,
    json: { error: { code: "overloaded", field: "thread_id", hint: expect.any(String) } },
  });
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  held.resolve();
  const taken = (await Promise.all(asked)).filter(({ status }) => status === 200);
  expect(taken).toHaveLength(17);
});

it(
  "accepts three quarters of the queue's 1000 questions from one account, and refuses one more",
  SLOW,
  async () => {
    const { _id } = (await running.send("GET", "/v1/agents", { key: admin })).json.data.agents[0];
    const webhook = { url: HOOK };
    const [account] = await running.store.records.accounts();
    const { waiting } = await running.store.queue.figures("chat", undefined);
    const body = JSON.stringify({ agent_id: _id, user: "Hello", webhook });
    const job = { accountId: account?.id ?? "", body, nowMs: Date.now(), jobsMax: JOBS_MAX };
    const add = (at: number) =>
      running.store.queue.put({ ...job, queue: "chat", line: `m${at}`, name: `m${at}` });
    const share = (JOBS_MAX * 3) / 4;
    await Promise.all(Array.from({ length: share - 1 - waiting }, (_, at) => add(at)));
    expect((await ask(running, { user: "Hello", webhook })).status).toBe(202);
    const refused = await ask(running, { user: "Hello", webhook });
    expect(refused).toMatchObject({ status: 429, json: { error: { code: "queue_full" } } });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect((await running.store.queue.figures("chat", undefined)).waiting).toBe(share);
  },
);
