import { describe, expect, it } from "vitest";
import { bestLines, reflowed } from "../../../src/cli/results/best-lines.ts";
import { queryMatches } from "../../../src/cli/results/matches.ts";
import { type Found, resultsText } from "../../../src/cli/results/result-text.ts";
import { styleOf } from "../../../src/cli/terminal/style.ts";
import { cellsOf } from "../../../src/cli/terminal/wrap.ts";

const found: Found = {
  score: 0.83,
  path: "handbook/telescopes.md",
  source: "/docs",
  docId: "d",
  title: "Telescopes",
  headings: ["Telescopes", "Heater"],
  chunkId: "c",
  version: 1,
  content:
    "## Heater\n\nThe dome opens at dusk and closes at dawn, unless the wind is stronger than fifteen metres per second.\n" +
    "Visitors wait in the hall.\nOnly the duty astronomer may switch off the heater.\n" +
    `It takes an hour to warm up. ${"The rest of the night is quiet. ".repeat(20)}`,
  hits: undefined,
  folderDescription: undefined,
  position: { lines: { first: 12, last: 20 } },
};
const text = (env: NodeJS.ProcessEnv, isTTY: boolean, columns: number, isFull = false): string =>
  resultsText([found], queryMatches("who may switch off the heater?"), style(env, isTTY, columns), isFull);
const style = (env: NodeJS.ProcessEnv, isTTY: boolean, columns: number) =>
  styleOf({
    env,
    stdout: { isTTY, columns, write: () => undefined, draw: () => undefined, bar: () => undefined },
  });

describe("a result", () => {
  it("a result is plain text of 80 columns where there is no terminal", () => {
    expect(text({ LANG: "C" }, false, 300)).toBe(
      " 1  ####- 0.83  handbook/telescopes.md:12\n" +
        "    Telescopes > Heater\n" +
        "    Only the duty astronomer may switch off the heater. It takes an hour to\n" +
        "    warm up. The rest of the night is quiet. The rest of the night is quiet.\n" +
        "    The rest of the night is quiet. The rest of the night is quiet. The rest of\n" +
        "    the night is quiet. The rest of the night is quiet. The rest of the night …\n",
    );
  });

  it.each([20, 80, 200])("fits a terminal of %i columns", (columns) => {
    for (const line of text({ NO_COLOR: "1", TERM: "dumb", LANG: "de_DE.UTF-8" }, true, columns)
      .split("\n")
      .slice(1))
      expect(cellsOf(line)).toBeLessThan(columns);
  });

  it("highlights the words of the query, but no function words, and links to the file", () => {
    const shown = text({ TERM: "xterm", LANG: "C.UTF-8" }, true, 80);
    expect(shown).toContain("\u001b[1m\u001b[33mheater\u001b[39m\u001b[22m");
    expect(shown).not.toContain("\u001b[33mthe\u001b");
    expect(shown).toMatch(/\]8;;file:\/\/[^/]*\/docs\/handbook\/telescopes\.md/);
    expect(shown).toContain("▰▰▰▰");
  });

  it.each([
    ["NO_COLOR is set", { NO_COLOR: "1", TERM: "dumb" }],
    ["the terminal is dumb", { TERM: "dumb" }],
  ])("a result has no control sequences where %s", (_name, env) => {
    expect(text(env, true, 80)).not.toContain("\u001b");
  });

  it("a result has no line without text, and no title that is the name of the file", () => {
    const bare = { ...found, title: "telescopes.md", headings: [], content: "The heater." };
    expect(resultsText([bare], queryMatches("x"), style({ TERM: "xterm" }, true, 80), false)).toMatch(
      /telescopes\.md:12.*\n {4}The heater\.\n$/,
    );
  });

  it("a result is whole with --expand", () => {
    expect(text({}, false, 80, true)).toContain("    Visitors wait in the hall.\n");
  });

  it("escapes what a terminal obeys", () => {
    const hostile = {
      ...found,
      path: "a\u001b[2J\n.md",
      title: "\u001b]0;x\u0007",
      content: "heater \u001b[31m",
    };
    const shown = resultsText([hostile], queryMatches("heater"), style({ TERM: "dumb" }, true, 80), false);
    expect(shown).not.toContain("\u001b");
    expect(shown).toContain(String.raw`a\u001b[2J\n.md`);
  });
});

describe("the best lines of a chunk", () => {
  it.each([
    ["a chunk that fits is whole", "One. Two two.\nThree.", "three", ["One. Two two. Three."]],
    ["a list keeps its lines", "- one\n- two", "two", ["- one", "- two"]],
    ["a named heading is left out", "# Title\n\nText.", "text", ["Text."]],
    ["a chunk that is only a heading stays", "# Title", "title", ["# Title"]],
    ["front matter is left out", "---\ntags: [text]\n---\n# Title\n\nText.", "text", ["Text."]],
    ["a chunk that is only front matter stays", "---\na: 1\n---", "a", ["--- a: 1", "---"]],
    ["nothing matches", "Alpha. Beta.", "gamma", ["Alpha. Beta."]],
  ])("%s", (_name, content, query, lines) => {
    expect(bestLines(content, ["Title"], queryMatches(query), { cells: 40, lines: 3 })).toEqual(lines);
  });

  it("keeps the lines of code and tables apart", () => {
    const code = "if (a) {\n  b();\n| c | d |\n| 1 | 2 |";
    expect(reflowed(code)).toBe(code);
  });
});

describe("the words of a query", () => {
  it.each([
    ["switching heaters", "Switch the heater!", ["Switch", "heater"]],
    ["Möhren", "mohren und MÖHREN", ["mohren", "MÖHREN"]],
    ["東京", "東京都", ["東", "京"]],
    ["who is the", "the who", ["the", "who"]],
  ])("words of a query: %j are found in %j", (query, given, matches) => {
    const runs = queryMatches(query).runsOf(given);
    expect(runs.map((run) => run.text).join("")).toBe(given);
    expect(runs.filter(({ isMatch }) => isMatch).map((run) => run.text)).toEqual(matches);
  });
});
