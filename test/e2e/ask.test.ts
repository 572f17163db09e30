import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ENDPOINT_KEY, openModelEndpoint, type ModelEndpoint } from "../fakes/model-endpoint.ts";
import { picture } from "../kb/ingest/extract/picture-fixture.ts";
import {
  type Ended,
  kbsync,
  type Running,
  startProgram,
  startUp,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";

const temporary = temporaryFolder("ask");
const docs = join(temporary.path, "docs");
const config = join(temporary.path, "kbsync.config.json");
const keyFile = join(temporary.path, "model-key");
const image = join(temporary.path, "notice.png");
let endpoint: ModelEndpoint;
let plain: Running;
let asking: Running;

beforeAll(async () => {
  mkdirSync(docs);
  writeFileSync(join(docs, "harbour.md"), "# Harbour\n\nIt is old. The new crane lifts forty tons.\n");
  writeFileSync(image, await (await picture(["The ferry sails at noon."])).png().toBuffer());
  endpoint = await openModelEndpoint();
  writeFileSync(keyFile, `${ENDPOINT_KEY}\n`, { mode: 0o600 });
  writeConfig({});
  plain = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], join(temporary.path, "plain"));
  asking = await startUp(["up", "--config", config, "--port", "0"], join(temporary.path, "asking"));
  for (const each of [plain, asking])
    await until("the first agreement", () => each.output.stdout.includes(" searchable, "));
});
afterAll(async () => {
  await stop(plain);
  await stop(asking);
  await endpoint.close();
  temporary.remove();
});
beforeEach(() => {
  endpoint.behave = () => ({ kind: "answer", text: "The crane lifts forty tons. [1]" });
});

function writeConfig(model: object): void {
  const languageModel = { baseUrl: endpoint.url, model: "seeing", apiKeyFile: keyFile, ...model };
  const agents = [
    { id: "pirate", systemPrompt: "You are a pirate.", fallbackModel: "builtin/ocr", knowledge: [] },
  ];
  writeFileSync(config, JSON.stringify({ sources: [{ path: docs }], kb: { languageModel, agents } }));
}

const ask = ({ stateDir }: Pick<Running, "stateDir">, ...args: string[]): Promise<Ended> =>
  kbsync(["ask", ...args, "--config", config, "--state-dir", stateDir]);
const sent = () => JSON.stringify(endpoint.requests.at(-1)?.messages);

describe("kbsync ask without a model", () => {
  it("quotes the files that fit, and says what it is", async () => {
    const { code, stdout, stderr } = await ask(plain, "What does the crane lift?");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^No language model answered this\./);
    expect(stdout).toContain("“The new crane lifts forty tons.” [1]");
    expect(stdout).toMatch(
      /\nSources\n {2}\[1\] 0\.\d\d {2}harbour\.md:3 {2}“The new crane lifts forty tons\.”\n$/,
    );
  });

  it("quotes a folder of the command line after its daemon ended, with words that need no quotes", async () => {
    const stateDir = join(temporary.path, "once");
    await kbsync(["sync", docs, "--tier", "fastest", "--state-dir", stateDir]);
    const { code, stdout } = await kbsync([
      "ask",
      "what",
      "does",
      "the",
      "crane",
      "lift",
      "--state-dir",
      stateDir,
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain("“The new crane lifts forty tons.” [1]");
  });

  it("reads the text of images", async () => {
    const { code, stdout } = await ask(plain, "When does the ferry sail?", "--image", image);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Image: notice\.png \(PNG, [^)]*\)\. Its text:\n\nThe ferry sails at noon\./);
  });
});

describe("kbsync ask with a model", () => {
  it("prints its answer with the sources by file", async () => {
    const { code, stdout, stderr } = await ask(asking, "What does the crane lift?");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^The crane lifts forty tons\. \[1\]\n\nSources\n {2}\[1\] .*harbour\.md/);
    expect(sent()).toContain("forty tons");
  });

  it("kbsync ask goes on with a thread, which knows its images", async () => {
    const second = join(temporary.path, "second.png");
    await sharp({ create: { width: 20, height: 20, channels: 3, background: "#00f" } })
      .png()
      .toFile(second);
    await ask(asking, "Look at these.", "-i", image, "-i", second, "-t", "tour");
    expect(sent().match(/image_url/g)).toHaveLength(4);
    const { stdout } = await ask(asking, "And what was the first?", "--thread", "tour");
    expect(sent()).toContain("Look at these.");
    expect(sent().match(/image_url/g)).toHaveLength(4);
    expect(stdout).toContain("forty tons");
  });

  it("asks the agent that is named; where its model fails the second answers, and that is said", async () => {
    const { stdout } = await ask(asking, "Ahoy", "--agent", "pirate");
    expect(sent()).toContain("You are a pirate.");
    expect(stdout).toContain("forty tons");
    endpoint.behave = () => ({ kind: "fail", status: 400, message: "out of rum" });
    const fallen = await ask(asking, "Ahoy", "--agent", "pirate");
    expect(fallen.code).toBe(0);
    expect(fallen.stdout).toMatch(/answered by builtin\/ocr, after: the model seeing failed: .*out of rum/);
  });

  it("kbsync ask prints JSON", async () => {
    const { stdout } = await ask(asking, "What does the crane lift?", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      data: { model: "seeing-2026", finish_reason: "completed", annotations: [{ type: "citation" }] },
      usage: { input_tokens: 100 },
    });
  });
});

describe("kbsync ask while the model writes", () => {
  it.each([
    ["a running service", () => asking.stateDir],
    ["a service of its own", () => join(temporary.path, "alone")],
  ])(
    "prints each piece as it comes; Ctrl-C ends it and the request to the model: %s",
    async (_name, folder) => {
      const broken = endpoint.brokenOff();
      endpoint.behave = () => ({ kind: "stall", after: ["The crane ", "lifts "] });
      const args = ["ask", "What does it lift?", "--config", config, "--state-dir", folder()];
      const asked = startProgram(args, temporary.path, { KBSYNC_LOG: "warn" });
      // The model has not come to an end, and never does.
      await until("the first words", () => asked.output.stdout === "The crane lifts ");
      expect(asked.child.exitCode).toBeNull();
      expect(await stop(asked, "SIGINT")).toBe(130);
      await until("the end of the request", () => endpoint.brokenOff() === broken + 1);
      expect(asked.output.stdout).toMatch(/^The crane lifts \n?$/);
      expect(asked.output.stderr).not.toMatch(/\n\s+at /);
    },
  );

  it("kbsync ask ends by Ctrl-C before its first piece without a word", async () => {
    const started = endpoint.requests.length;
    endpoint.behave = () => ({ kind: "stall" });
    const args = [
      "ask",
      "What does it lift?",
      "--config",
      config,
      "--state-dir",
      join(temporary.path, "alone"),
    ];
    const asked = startProgram(args, temporary.path, { KBSYNC_LOG: "warn" });
    await until("the question at the model", () => endpoint.requests.length > started);
    expect(await stop(asked, "SIGINT")).toBe(130);
    expect(asked.output.stdout.trim()).toBe("");
    expect(asked.output.stderr).not.toMatch(/disconnected|failed|\n\s+at /);
  });
});

describe("kbsync ask ends with words and a code", () => {
  it.each<[string, string[], number, RegExp]>([
    ["nothing asked", [" "], 2, /the question is empty/],
    ["an image that is not there", ["What?", "-i", "nowhere.png"], 2, /there is no such file/],
    ["an image that is a folder", ["What?", "-i", docs], 2, /it is not a file/],
    ["an image that is none", ["What?", "-i", config], 3, /expected an image, got/],
    ["an agent that is not there", ["What?", "-a", "nobody"], 3, /no agent "nobody"[\s\S]*\/v1\/agents/],
    ["a thread without a name", ["What?", "-t", ""], 2, /--thread/],
  ])("kbsync ask refuses %s", async (_name, args, code, words) => {
    const ended = await ask(asking, ...args);
    expect(ended.code).toBe(code);
    expect(ended.stderr).toMatch(words);
    expect(ended.stdout).toBe("");
  });

  it("a model that fails", async () => {
    endpoint.behave = () => ({ kind: "fail", status: 400, message: "out of order" });
    const failed = await ask(asking, "What?");
    expect(failed.code).toBe(3);
    expect(failed.stderr).toMatch(/model seeing failed: its endpoint answered 400: out of order/);
    endpoint.behave = () => ({ kind: "break", after: ["The crane "] });
    const broken = await ask(asking, "What?");
    expect([broken.code, broken.stdout.split("\n")[0]]).toEqual([3, "The crane "]);
    expect(broken.stderr).toMatch(/the answer broke off/);
  });

  it.each<[string, () => object, RegExp]>([
    [
      "a key file that is missing",
      () => ({ apiKeyFile: join(temporary.path, "none") }),
      /there is no key file .*none\n.*kb\.languageModel\.apiKeyFile/,
    ],
    [
      "a key file of two lines",
      () => {
        const file = join(temporary.path, "two");
        writeFileSync(file, "sk-one\nsk-two\n", { mode: 0o600 });
        return { apiKeyFile: file };
      },
      /several lines/,
    ],
  ])("%s", async (_name, model, words) => {
    writeConfig(model());
    let ended: Ended;
    try {
      ended = await ask({ stateDir: join(temporary.path, "unstarted") }, "What?");
    } finally {
      writeConfig({});
    }
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(words);
    expect(ended.stdout + ended.stderr).not.toContain("sk-one");
  });

  it("uses a key file that everybody can read, and warns", async () => {
    chmodSync(keyFile, 0o644);
    const ended = await ask({ stateDir: join(temporary.path, "open") }, "What?");
    chmodSync(keyFile, 0o600);
    expect(ended.code).toBe(0);
    expect(ended.stderr).toMatch(/other users of this machine can read the key/);
  });
});
