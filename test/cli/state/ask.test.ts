import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openOperator } from "../../../src/cli/state/ask.ts";
import { stateFolder, writeServiceAddress } from "../../../src/cli/state/state-folder.ts";
import { openDaemonBridge } from "../../../src/cli/compose/daemon-bridge.ts";
import { type Control, openControl } from "../../../src/sync/control/server.ts";
import { cliContext } from "../context.ts";

let stateDir: string;
let control: Control | undefined;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "kbsync-ask-"));
});
afterEach(async () => {
  await control?.close();
  control = undefined;
  rmSync(stateDir, { recursive: true, force: true });
});

const operator = () => openOperator(cliContext({ cwd: stateDir }), { stateDir });

it("a command waits for the daemon of a service that has just started", async () => {
  writeServiceAddress(stateFolder(stateDir), "http://127.0.0.1:1", true);
  const asked = operator().need("resume", {});
  await sleep(120);
  const { operations } = openDaemonBridge(new AbortController().signal);
  control = await openControl({
    stateDir,
    version: "test",
    env: {},
    operations: { ...operations, resume: async () => ({ sources: ["/docs"] }) },
    onSocketOutside: () => undefined,
  });
  expect(await asked).toEqual({ sources: ["/docs"] });
});

it("a command waits for no daemon beside a service alone", async () => {
  writeServiceAddress(stateFolder(stateDir), "http://127.0.0.1:1", false);
  await expect(operator().need("resume", {})).rejects.toMatchObject({ code: "no_daemon" });
});
