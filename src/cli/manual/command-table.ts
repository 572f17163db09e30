import type { Argument, Command, Option } from "commander";
import { examplesOf } from "./examples.ts";

/** An option of a command. */
export interface TableOption {
  /** `-p`; undefined: it has none. */
  readonly short: string | undefined;
  /** `--port`. */
  readonly long: string;
  /** `<n>`; undefined: it takes no value. */
  readonly value: string | undefined;
  readonly description: string;
}

/** An argument of a command. */
export interface TableArgument {
  /** `[dir]` or `<name>`. */
  readonly usage: string;
  readonly description: string;
}

/** A command. */
export interface TableCommand {
  /** Full name, with its group: `key create`. */
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly TableArgument[];
  readonly options: readonly TableOption[];
  /** Example command lines. */
  readonly examples: readonly string[];
}

/** All commands of the program, with their options and arguments. */
export interface CommandTable {
  readonly name: string;
  readonly description: string;
  /** Options of the program itself. */
  readonly options: readonly TableOption[];
  readonly commands: readonly TableCommand[];
}

const HELP: TableOption = {
  short: "-h",
  long: "--help",
  value: undefined,
  description: "show what the command does and takes",
};

/** Builds the table from the program's commands. */
export function commandTable(program: Command): CommandTable {
  return {
    name: program.name(),
    description: program.description(),
    options: [...program.options.map(optionOf), HELP],
    commands: program.commands.flatMap((command) =>
      command.commands.length === 0
        ? [commandOf(command, "")]
        : command.commands.map((below) => commandOf(below, `${command.name()} `, command.options)),
    ),
  };
}

/** `options` are those that the command shares with its group. */
function commandOf(command: Command, prefix: string, options: readonly Option[] = []): TableCommand {
  return {
    name: prefix + command.name(),
    description: command.description(),
    arguments: command.registeredArguments.map(argumentOf),
    options: [...[...command.options, ...options].map(optionOf), HELP],
    examples: examplesOf(prefix + command.name()),
  };
}

function optionOf({ flags, short, long, description }: Option): TableOption {
  const value = /[<[][^>\]]+[>\]]/.exec(flags)?.[0];
  return {
    short,
    long: long ?? flags,
    value,
    description,
  };
}

function argumentOf(argument: Argument): TableArgument {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return {
    usage: argument.required ? `<${name}>` : `[${name}]`,
    description: argument.description,
  };
}
