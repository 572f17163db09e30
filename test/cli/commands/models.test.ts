import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildProgram } from "../../../src/cli/command-line.ts";
import { KNOWN_MODELS } from "../../../src/kb/embed/known-models.ts";
import { readConfiguredModel } from "../../../src/kb/embed/model-files.ts";
import { writeTinyModel } from "../../kb/embed/tiny-model.ts";
import { cliContext, outputTo } from "../context.ts";

const E5 = "multilingual-e5-small";

let cwd: string;
let printed: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "kbsync-models-"));
  printed = "";
});
afterEach(() => rmSync(cwd, { recursive: true }));

const configure = (config: object): void =>
  writeFileSync(join(cwd, "kbsync.config.json"), JSON.stringify(config));
const configured = (): { kb?: { embedding?: { model?: string } } } =>
  JSON.parse(readFileSync(join(cwd, "kbsync.config.json"), "utf8")) as ReturnType<typeof configured>;

async function models(...args: string[]): Promise<string> {
  // No port listens there, so nothing is ever downloaded.
  const env = { HTTPS_PROXY: "http://127.0.0.1:9" };
  printed = "";
  const context = cliContext({ cwd, env, stdout: outputTo((text) => (printed += text)) });
  const all = ["models", ...args, "--state-dir", join(cwd, "state")];
  await (await buildProgram(context, all)).parseAsync(all, { from: "user" });
  return printed;
}

it("shows the model in use and the known ones", async () => {
  configure({ service: {} });
  const text = await models();
  expect(text).toMatch(/^in use: /);
  for (const { name } of KNOWN_MODELS) expect(text).toContain(name);
  configure({ kb: { embedding: { baseUrl: "http://127.0.0.1:1/v1", model: "other" } } });
  expect(await models()).toContain("in use: other at http://127.0.0.1:1/v1");
  expect(JSON.parse(await models("--json"))).toMatchObject({
    inUse: { name: "other" },
    known: KNOWN_MODELS.map(({ name }) => ({ name })),
  });
});

it("switches to a model in a folder, and back to the packaged one", async () => {
  configure({ service: {} });
  await writeTinyModel(join(cwd, "mine"));
  const text = await models("./mine");
  expect(text).toContain("The next start of kbsync uses it");
  expect(text).toContain("All documents in moderate and high_accuracy get new vectors");
  expect(configured().kb?.embedding?.model).toBe(join(cwd, "mine"));
  expect(await models()).toMatch(/^in use: mine in .*\/mine\n/);
  await models("all-MiniLM-L6-v2");
  expect(configured().kb?.embedding?.model).toBe("all-MiniLM-L6-v2");
  const packaged = await readConfiguredModel(undefined);
  expect(JSON.parse(await models("--json"))).toMatchObject({ inUse: packaged });
});

it("switches to a known model that was downloaded before", async () => {
  configure({ service: {} });
  const folder = join(cwd, "state/models", E5);
  await writeTinyModel(folder);
  await models(E5);
  expect(configured().kb?.embedding?.model).toBe(E5);
  expect(JSON.parse(await models("--json"))).toMatchObject({ inUse: { folder } });
});

it("says what to do without access to the hub, and changes nothing", async () => {
  configure({ service: {} });
  await expect(models(E5)).rejects.toMatchObject({
    code: "model_download",
    message: expect.stringMatching(
      /^cannot get the model from https:\/\/huggingface\.co\/Xenova\/multilingual-e5-small: ./,
    ) as string,
    hint: expect.stringMatching(/^Nothing was changed.*`kbsync models FOLDER`/) as string,
  });
  expect(configured()).toEqual({ service: {} });
  expect(existsSync(join(cwd, "state/models"))).toBe(false);
});

it.each<[string, object, string[], RegExp]>([
  ["what is neither a known model nor a folder with one", {}, ["gpt"], /there is no model gpt: /],
  [
    "a hosted service",
    { service: { apiUrl: "http://a.example", dbUrl: "http://a.example", resourcesUrl: "http://a.example" } },
    [],
    /a hosted service, which has its own model/,
  ],
  [
    "a model elsewhere",
    { kb: { embedding: { baseUrl: "http://127.0.0.1:1/v1", model: "other" } } },
    [E5],
    /names a model at .*: remove it first/,
  ],
])("kbsync models refuses %s", async (_name, config, args, message) => {
  configure(config);
  await expect(models(...args)).rejects.toMatchObject({
    code: "usage",
    message: expect.stringMatching(message) as string,
  });
});

it("says how to write a configuration, where there is none", async () => {
  await expect(models(E5)).rejects.toMatchObject({ code: "config_not_found" });
});
