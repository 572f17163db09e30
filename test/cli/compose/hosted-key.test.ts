import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findService } from "../../../src/cli/compose/reached-service.ts";
import { exitCodeOf } from "../../../src/cli/output/exit-code.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-key-"));
  const addresses = { apiUrl: "http://a", dbUrl: "http://a", resourcesUrl: "http://a" };
  writeFileSync(
    join(folder, "kbsync.config.json"),
    JSON.stringify({ service: { ...addresses, pauthkeyFile: "key" } }),
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

const find = (env: NodeJS.ProcessEnv) =>
  findService(loadConfig({ cwd: folder, env: {} }), stateFolder(folder), env);

it.each([
  ["a line break inside", "kb_one\nkb_two", "several lines"],
  ["a control character", "kb_\u0007one", "a control character"],
])("a key in the environment with %s is refused by name, without its content", async (_name, text, words) => {
  const error: unknown = await find({ KBSYNC_PAUTHKEY: text }).catch((cause: unknown) => cause);
  expect(error).toMatchObject({
    code: "key_invalid",
    message: `KBSYNC_PAUTHKEY is not a key: expected one line of visible ASCII characters, got ${words}`,
  });
  expect(exitCodeOf(error)).toBe(2);
});

it("a key file with several lines is refused by its path, a missing one too", async () => {
  const missing: unknown = await find({}).catch((cause: unknown) => cause);
  expect(missing).toMatchObject({
    code: "key_invalid",
    message: `there is no key file ${join(folder, "key")}`,
  });
  expect(exitCodeOf(missing)).toBe(2);
  writeFileSync(join(folder, "key"), "kb_one\nkb_two\n");
  const several: unknown = await find({}).catch((cause: unknown) => cause);
  expect(several).toMatchObject({ code: "key_invalid", subject: join(folder, "key") });
  expect(exitCodeOf(several)).toBe(2);
});

it("space around a key does not count", async () => {
  expect(await find({ KBSYNC_PAUTHKEY: "kb_one\n" })).toMatchObject({ pauthkey: "kb_one" });
  writeFileSync(join(folder, "key"), "kb_two \r\n");
  expect(await find({})).toMatchObject({ pauthkey: "kb_two" });
});
