import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseConfig } from "../src/config/config-file.ts";
import { table, wholeProgram } from "./cli/manual/program.ts";
import { DOCUMENTS, FENCE } from "./shown-commands.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** The anchors of a document: its headings as GitHub spells them. */
function anchorsOf(file: string): ReadonlySet<string> {
  const headings = read(file)
    .replaceAll(FENCE, "")
    .matchAll(/^#+ (.*)$/gm);
  const slug = (heading: string): string =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-");
  return new Set([...headings].map(([, heading = ""]) => slug(heading)));
}

describe.each(DOCUMENTS)("%s", (file) => {
  it("links only to what exists", () => {
    const links = read(file)
      .replaceAll(FENCE, "")
      .matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)#?([^)\s]*)\)/g);
    const broken = [...links].filter(([, path = "", anchor = ""]) => {
      const target = path === "" ? file : normalize(join(dirname(file), path));
      if (!existsSync(join(root, target))) return true;
      return anchor !== "" && !anchorsOf(target).has(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it("shows only commands and options that the program has", () => {
    const text = read(file);
    const blocks = [...text.matchAll(FENCE)].map(([, , lines = ""]) => lines);
    const spans = [...text.replaceAll(FENCE, "").matchAll(/`([^`\n]+)`/g)].map(([, words = ""]) => words);
    const code = [...blocks, ...spans];
    const shown = code.flatMap((each) =>
      Array.from(each.matchAll(/(?:^|sudo |\$ |\.\/|-T service |-- )kbsync ([a-z]+[^\n`|#&>]*)/gm)),
    );
    const unknown = shown.flatMap(([, words = ""]) => {
      const [name = "", second = "", ...rest] = words.trim().split(/\s+/);
      const command =
        table.commands.find((each) => each.name === `${name} ${second}`) ??
        table.commands.find((each) => each.name === name) ??
        (table.commands.some((each) => each.name.startsWith(`${name} `)) ? { options: [] } : undefined);
      if (command === undefined) return [`kbsync ${name}`];
      const known = new Set(["--help", "-h", ...command.options.flatMap(({ long, short }) => [long, short])]);
      return [second, ...rest]
        .map((word) => /^--?[a-z][a-z0-9-]*/.exec(word)?.[0])
        .filter((option) => option !== undefined && !known.has(option))
        .map((option) => `kbsync ${name} ${option}`);
    });
    expect(unknown).toEqual([]);
  });

  it("runs only scripts that package.json has", () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(read("package.json")));
    const run = [...read(file).matchAll(/\bnpm run ([a-z][\w:-]*)/g)].map(([, name = ""]) => name);
    expect(run.filter((name) => !(name in scripts))).toEqual([]);
  });

  it("shows only command lines that the program takes", async () => {
    const lines = [...read(file).matchAll(FENCE)]
      .filter(([, language]) => language === "sh")
      .flatMap(([, , text = ""]) => text.replaceAll("\\\n", " ").split("\n"))
      .flatMap((line) => /^(?:sudo )?kbsync (.*)$/.exec(line)?.[1] ?? []);
    const refused = await Promise.all(
      lines.map(async (line) => {
        const words = wordsOf(line);
        const failure = await refusalOf(words);
        return failure === undefined ? [] : [`${line}: ${failure}`];
      }),
    );
    expect(refused.flat()).toEqual([]);
  });
});

it("the help of each command shows examples, which the program takes", async () => {
  expect(table.commands.filter(({ examples }) => examples.length === 0).map(({ name }) => name)).toEqual([]);
  const shown = table.commands.flatMap(({ name, examples }) => examples.map((line) => ({ name, line })));
  const refused = await Promise.all(
    shown.map(async ({ name, line }) => {
      if (!line.startsWith(`kbsync ${name}`)) return [`${line} is no example of ${name}`];
      const failure = await refusalOf(wordsOf(line).slice(1));
      return failure === undefined ? [] : [`${line}: ${failure}`];
    }),
  );
  expect(refused.flat()).toEqual([]);
});

/** The words of a command line up to a comment, a pipe or another command. */
function wordsOf(line: string): string[] {
  const [command = ""] = line.split(/\s+(?:#|\||&&|>)\s?/);
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, one, two, three]) => one ?? two ?? three ?? "",
  );
}

/** Why the program would refuse a command line; undefined: it would run it. Runs nothing. */
async function refusalOf(words: readonly string[]): Promise<string | undefined> {
  const program = await wholeProgram();
  const disarm = (command: Command): void => {
    command.exitOverride().configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
    if (command.commands.length === 0) command.action(() => undefined);
    command.commands.forEach(disarm);
  };
  disarm(program);
  try {
    await program.parseAsync(words, { from: "user" });
    return undefined;
  } catch (error) {
    return (error as Error).message.startsWith("(outputHelp)") ? undefined : (error as Error).message;
  }
}

it.each(["docs/RECIPES.md", "docs/CONFIG.md"])("every configuration of %s is valid", (file) => {
  const configurations = [...read(file).matchAll(FENCE)].filter(([, language]) => language === "json");
  expect(configurations.length).toBeGreaterThan(3);
  for (const [, , text = ""] of configurations) expect(() => parseConfig(text, file)).not.toThrow();
});

describe("docs/PROMISES.md", () => {
  const rows = [...read("docs/PROMISES.md").matchAll(/^\| \d.*$/gm)].map(([row]) => row);
  const promises = rows.map(
    (row) => /^\| \d+ \| \S.*\. \| `([^`]+)` › (.+) \|$/.exec(row)?.slice(1) ?? [row, ""],
  );

  it("has forty promises, numbered in order", () => {
    expect(rows.map((row) => Number.parseInt(row.slice(2), 10))).toEqual(
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
  });

  it.each(promises)("names a test that exists: %s › %s", (file, title) => {
    expect(titlesOf(join("test", file))).toContain(title);
  });
});

/** The titles of a file's tests as the source has them, with `%s` and `${name}` for values; not those of `it.skip` or `it.todo`. */
function titlesOf(file: string): string[] {
  const calls = read(file).matchAll(
    /(?:\b(?:it|test)(?:\.concurrent)?|\))\(\s*(["`])((?:\\.|(?!\1)[^\\])*)\1/g,
  );
  return [...calls].map(([, , title = ""]) => title);
}
