import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { openLog } from "../../src/cli/log.ts";

it("refuses a level it does not know, naming those it knows", () => {
  expect(() => openLog({ KBSYNC_LOG: "loud" }, false)).toThrow(
    /KBSYNC_LOG: expected one of debug, .*got "loud"/,
  );
});

it("never writes a key, wherever it stands", () => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL("../../src/cli/log.ts", import.meta.url).href)};
    const log = openLog({ KBSYNC_LOG: "debug" }, false);
    log.info({ pauthkey: "kb_secret" }, "top");
    log.info({ headers: { pauthkey: "kb_secret" } }, "headers");
    log.info({ req: { headers: { pauthkey: "kb_secret" } } }, "request");
    log.info({ options: { service: { pauthkey: "kb_secret" } } }, "options");
    log.flush();`;
  const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(status).toBe(0);
  expect(stderr.split("\n").filter((line) => line.includes("[Redacted]"))).toHaveLength(4);
  expect(stderr).not.toContain("kb_secret");
});
