import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findService } from "../../../src/cli/compose/reached-service.ts";
import { serviceKey } from "../../../src/cli/compose/models.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";

let folder: string;
let credentials: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-credential-"));
  credentials = join(folder, "credentials");
  mkdirSync(credentials);
  writeFileSync(join(folder, "file.key"), "from-the-file\n");
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const give = (id: string, text: string): void => writeFileSync(join(credentials, id), text, { mode: 0o400 });

async function hostedKey(env: Record<string, string>): Promise<string | undefined> {
  const url = "https://kb.example";
  const service = { apiUrl: url, dbUrl: url, resourcesUrl: url, pauthkeyFile: "file.key" };
  writeFileSync(join(folder, "c.json"), JSON.stringify({ service, stateDir: "state" }));
  const config = loadConfig({ file: join(folder, "c.json"), cwd: folder, env });
  return (await findService(config, stateFolder(config.stateDir), env))?.pauthkey;
}

it("a hosted service's key comes from the environment, else from the service manager, else from its file", async () => {
  const env = { CREDENTIALS_DIRECTORY: credentials };
  expect(await hostedKey(env)).toBe("from-the-file");
  give("pauthkey", "from-the-manager\n");
  expect(await hostedKey(env)).toBe("from-the-manager");
  expect(await hostedKey({ ...env, KBSYNC_PAUTHKEY: "from-the-environment" })).toBe("from-the-environment");
  expect(await hostedKey({ CREDENTIALS_DIRECTORY: "" })).toBe("from-the-file");
});

it("refuses a credential that is no key by its name, without its content", async () => {
  give("pauthkey", "two\nlines");
  const asked = hostedKey({ CREDENTIALS_DIRECTORY: credentials });
  await expect(asked).rejects.toMatchObject({ code: "key_invalid", subject: join(credentials, "pauthkey") });
  await expect(asked).rejects.not.toThrow("two");
});

it("the key of a model comes from the environment, else from the service manager, else from its file", () => {
  const log = pino({ level: "silent" });
  const file = join(folder, "file.key");
  const key = (env: Record<string, string>): string | undefined =>
    serviceKey(file, "kb.reranker.apiKeyFile", log, env)?.();
  expect(key({ CREDENTIALS_DIRECTORY: credentials })).toBe("from-the-file");
  give("kb.reranker.apiKey", "from-the-manager");
  expect(key({ CREDENTIALS_DIRECTORY: credentials })).toBe("from-the-manager");
  expect(key({})).toBe("from-the-file");
});
