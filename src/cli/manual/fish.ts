import { belowGroup } from "./bash.ts";
import type { CommandTable, Completes, TableCommand, TableOption } from "./command-table.ts";

/** Generates the completion script for fish: a file \`kbsync.fish\` in a completions folder, or sourced. */
export function fishCompletion(table: CommandTable): string {
  const { name, groups, commands } = table;
  const plain = commands.filter((command) => !command.name.includes(" "));
  // A group's command may have the same name as a top-level one.
  const plainly =
    groups.length === 0
      ? ""
      : `not __fish_seen_subcommand_from ${groups.map((group) => group.name).join(" ")}; and `;
  const lines = [
    `# fish completion for ${name}, made by \`${name} completion fish\``,
    // Offers files only to commands that take them.
    `complete -c ${name} -f`,
    ...table.options.map((option) => lineOf(name, "__fish_use_subcommand", option)),
    ...[...plain, ...groups].map((one) =>
      candidate(name, "__fish_use_subcommand", one.name, one.description),
    ),
    ...plain.flatMap((command) =>
      linesOf(name, `${plainly}__fish_seen_subcommand_from ${command.name}`, command),
    ),
    ...groups.flatMap((group) => linesOfGroup(table, group.name)),
  ];
  return `${lines.join("\n")}\n`;
}

function linesOfGroup(table: CommandTable, group: string): string[] {
  const below = table.commands.filter(({ name }) => name.startsWith(`${group} `));
  const names = belowGroup(table, group);
  const inGroup = `__fish_seen_subcommand_from ${group}`;
  const undecided = `${inGroup}; and not __fish_seen_subcommand_from ${names.join(" ")}`;
  return below.flatMap((command, at) => {
    const name = names[at] ?? "";
    const lines = linesOf(table.name, `${inGroup}; and __fish_seen_subcommand_from ${name}`, command);
    return [candidate(table.name, undecided, name, command.description)].concat(lines);
  });
}

function linesOf(program: string, condition: string, command: TableCommand): string[] {
  const [first] = command.arguments;
  const completes = first === undefined ? "" : argumentsOf(first.completes);
  return [
    ...command.options.map((option) => lineOf(program, condition, option)),
    ...(completes === "" ? [] : [`complete -c ${program} -n ${quoted(condition)} ${completes}`]),
  ];
}

function lineOf(program: string, condition: string, option: TableOption): string {
  const { short, long, value, completes, description } = option;
  const parts = [`complete -c ${program} -n ${quoted(condition)}`];
  if (short !== undefined) parts.push(`-s ${short.slice(1)}`);
  parts.push(`-l ${long.slice(2)}`);
  if (value !== undefined) parts.push("-r", argumentsOf(completes));
  parts.push(`-d ${quoted(description)}`);
  return parts.filter((part) => part !== "").join(" ");
}

function argumentsOf(completes: Completes): string {
  if (typeof completes !== "string") return `-a ${quoted(completes.join(" "))}`;
  switch (completes) {
    case "folder":
      return "-a '(__fish_complete_directories)'";
    case "file":
    case "path":
      return "-F";
    case "source":
      return "-a '(kbsync completion --list sources 2>/dev/null; __fish_complete_directories)'";
    case "agent":
      return "-a '(kbsync completion --list agents 2>/dev/null)'";
    case "words":
      return "";
  }
}

function candidate(program: string, condition: string, name: string, description: string): string {
  return `complete -c ${program} -n ${quoted(condition)} -a ${quoted(name)} -d ${quoted(description)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
