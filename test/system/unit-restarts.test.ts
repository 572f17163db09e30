import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { withRestartSteps } from "../../src/cli/systemd/unit-plan.ts";
import { directive } from "../../src/system/unit-text.ts";

const PACKAGED = ["kbsync.service", "kbsync@.service", "user/kbsync.service"].map((name) =>
  readFileSync(new URL(`../../systemd/${name}`, import.meta.url), "utf8"),
);

it.each([
  [undefined, [], []],
  [253, [], []],
  [254, ["6"], ["15"]],
  [259, ["6"], ["15"]],
])("with systemd %s the steps of restarts are %j up to %j seconds", (version, steps, longest) => {
  for (const text of PACKAGED) {
    const written = withRestartSteps(text, version);
    expect(directive(written, "RestartSteps")).toEqual(steps);
    expect(directive(written, "RestartMaxDelaySec")).toEqual(longest);
    expect(directive(written, "RestartSec")).toEqual(["2"]);
    // Within its section, of which [Install] is the next.
    expect(written.indexOf("RestartSteps")).toBeLessThan(written.indexOf("[Install]"));
  }
});
