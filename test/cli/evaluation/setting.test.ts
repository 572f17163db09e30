import { InvalidArgumentError } from "commander";
import { expect, it } from "vitest";
import { isSameRun } from "../../../src/cli/evaluation/last-runs.ts";
import { settingName, settingOption } from "../../../src/cli/evaluation/setting.ts";

it("settings are read in order, each once, with a name that says what differs", () => {
  const given = ["{}", '{"expand":"section","max_tokens":1000}', '{"filter":{"tags":"draft"}}', "{}"];
  let settings: ReturnType<typeof settingOption> = [];
  for (const text of given) settings = settingOption(text, settings);
  expect(settings).toEqual([
    { name: "expand=section max_tokens=1000", context: { expand: "section", max_tokens: 1000 } },
    { name: 'filter={"tags":"draft"}', filter: { tags: "draft" } },
    { name: "" },
  ]);
  expect(settingName({ tier: "moderate", setting: "expand=section" })).toBe("moderate expand=section");
  expect(settingName({ tier: "moderate", setting: "" })).toBe("moderate");
});

it.each(["expand", "[]", '{"expand":"all"}', '{"top_k":3}', '{"max_tokens":0}', "null"])(
  "a setting is refused that is not the fields of a search: %s",
  (text) => {
    expect(() => settingOption(text)).toThrow(InvalidArgumentError);
  },
);

it("runs are compared within their tier and setting", () => {
  const run = { questions: "/q.yaml", tier: "moderate" } as const;
  expect(isSameRun(run, { ...run, setting: "" })).toBe(true);
  expect(isSameRun(run, { ...run, setting: "expand=section" })).toBe(false);
  expect(isSameRun(run, { ...run, tier: "fastest" })).toBe(false);
});
