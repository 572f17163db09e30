import type { CommandTable, TableCommand, TableOption } from "../src/cli/manual/command-table.ts";

/** Content of the manual page besides the commands. */
export interface ManualFacts {
  readonly version: string;
  /** Exit statuses with their meaning. */
  readonly exits: readonly (readonly [code: number, meaning: string])[];
  /** Environment variables with their meaning. */
  readonly environment: readonly (readonly [name: string, meaning: string])[];
  /** Files with what they are for. */
  readonly files: readonly (readonly [path: string, meaning: string])[];
}

/** Renders the manual page in man(7) format. It has no date, so that output is reproducible. */
export function manPage(table: CommandTable, facts: ManualFacts): string {
  const { name } = table;
  const sections = [
    `.\\" Made from the program's own command table.`,
    `.TH ${name.toUpperCase()} 1 "" "${name} ${roff(facts.version)}" "User Commands"`,
    ".SH NAME",
    `${name} \\- keep a folder of documents and a knowledge base in exact agreement`,
    ".SH SYNOPSIS",
    `.B ${name}`,
    ".I command",
    "[options]",
    ".SH DESCRIPTION",
    roff(table.description),
    ".PP",
    roff("`kbsync up DIR` needs no configuration: it makes the folder searchable and keeps it"),
    roff("up to date. `kbsync init` writes a configuration; `kbsync doctor` shows what is"),
    roff("wrong."),
    ".SH OPTIONS",
    ...table.options.flatMap(optionLines),
    ".SH COMMANDS",
    ...table.commands.flatMap((command) => commandLines(name, command)),
    ".SH EXIT STATUS",
    ...facts.exits.flatMap(([code, meaning]) => termLines(`\\fB${code}\\fR`, meaning)),
    ".SH ENVIRONMENT",
    ...facts.environment.flatMap(([variable, meaning]) => termLines(`\\fB${roff(variable)}\\fR`, meaning)),
    ".SH FILES",
    ...facts.files.flatMap(([path, meaning]) => termLines(`\\fI${roff(path)}\\fR`, meaning)),
    ".SH SEE ALSO",
    ".BR systemctl (1),",
    ".BR journalctl (1),",
    ".BR inotify (7)",
  ];
  return `${sections.join("\n")}\n`;
}

function commandLines(program: string, command: TableCommand): string[] {
  const usage = command.arguments.map((argument) => argument.usage).join(" ");
  return [
    `.SS "${roff(`${program} ${command.name} ${usage}`.trimEnd())}"`,
    roff(sentence(command.description)),
    ...command.arguments
      .filter(({ description }) => description !== "")
      .flatMap(({ usage: term, description }) => termLines(`\\fI${roff(term)}\\fR`, description)),
    ...command.options.flatMap(optionLines),
    ...exampleLines(command.examples),
  ];
}

function exampleLines(examples: readonly string[]): string[] {
  if (examples.length === 0) return [];
  const heading = examples.length === 1 ? "Example:" : "Examples:";
  return [".PP", heading, ".PP", ".RS 4", ".nf", ...examples.map(roff), ".fi", ".RE"];
}

function optionLines({ short, long, value, description }: TableOption): string[] {
  const flags = (short === undefined ? [long] : [short, long]).map((flag) => `\\fB${roff(flag)}\\fR`);
  const takes = value === undefined ? "" : ` \\fI${roff(value)}\\fR`;
  return termLines(`${flags.join(", ")}${takes}`, description);
}

function termLines(term: string, meaning: string): string[] {
  return [".TP", term, roff(sentence(meaning))];
}

/** Escapes text for man(7): plain hyphens, and no line that starts with a request. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\(rs")
    .replaceAll("-", "\\-")
    .replaceAll('"', "\\(dq")
    .replaceAll("`", "")
    .replaceAll(/^([.'])/gm, "\\&$1");
}

function sentence(words: string): string {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
