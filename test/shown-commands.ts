import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { examplesOf } from "../src/cli/manual/examples.ts";
import { table } from "./cli/manual/program.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The documents that show commands. */
export const DOCUMENTS: readonly string[] = [
  "README.md",
  "CONTRIBUTING.md",
  ...["docs", "docs/adr"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `${folder}/${name}`),
  ),
];

/** A block of code: its language, and its lines. */
export const FENCE = /^```(\w*)\n(.*?)^```/gms;

/** The shell's lines in a document's blocks, in order; a line that goes on is one. */
export function shellLinesOf(document: string): readonly string[] {
  const text = readFileSync(join(root, document), "utf8");
  return [...text.matchAll(FENCE)].flatMap(([, language, block = ""]) => {
    const lines = block.replaceAll("\\\n", " ").split("\n");
    if (language === "sh") return lines.map((line) => line.replace(/^\$ /, ""));
    // What a terminal showed: only what stands behind its prompt was typed.
    return lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  });
}

/** The blocks of a document that are typed into a shell, in order. */
export function shellBlocksOf(document: string): readonly string[] {
  const text = readFileSync(join(root, document), "utf8");
  return [...text.matchAll(FENCE)].flatMap(([, language, block = ""]) => (language === "sh" ? [block] : []));
}

/** Every command line with kbsync, or with npm in a clone, that `--help`, README and docs show, once each, without its comment. */
export function shownCommands(): readonly string[] {
  // A group of commands, such as "key", has examples beside those of its commands.
  const groups = table.commands.map(({ name }) => name.replace(/ .*/, ""));
  const examples = [...table.commands.flatMap((command) => command.examples), ...groups.flatMap(examplesOf)];
  const shown = DOCUMENTS.flatMap((document) => shellLinesOf(document));
  const lines = [...examples, ...shown].map((line) => line.replace(/\s+#.*$/, "").trim());
  return [...new Set(lines.filter((line) => /(?:^|[\s(])kbsync\s|^npm\s/.test(line)))];
}
