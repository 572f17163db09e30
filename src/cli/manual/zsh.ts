import { belowGroup } from "./bash.ts";
import type { CommandTable, Completes, TableCommand, TableOption } from "./command-table.ts";

/** Generates the completion script for zsh: a file \`_kbsync\` in a folder of \`fpath\`, or sourced. */
export function zshCompletion(table: CommandTable): string {
  const { name, groups, commands } = table;
  const plain = commands.filter((command) => !command.name.includes(" "));
  const top = [...plain, ...groups].map((one) => described(one.name, one.description));
  return `#compdef ${name}
# zsh completion for ${name}, made by \`${name} completion zsh\`
_${name}_lines() {
  local -a lines=("\${(@f)$(${name} completion --list $1 2>/dev/null)}")
  compadd -a lines
}
_${name}_sources() { _${name}_lines sources; _files -/ }
_${name}_agents() { _${name}_lines agents }
_${name}() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C \\
${table.options.map((option) => `    ${specOf(option)} \\`).join("\n")}
    '1: :->command' '*:: :->rest' && return
  case $state in
    command)
      local -a commands=(
${top.map((each) => `        ${each}`).join("\n")}
      )
      _describe command commands
      ;;
    rest)
      case $words[1] in
${plain.map((command) => `        ${command.name}) ${argumentsOf(command)} ;;`).join("\n")}
${groups.map((group) => groupCase(table, group.name)).join("\n")}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _${name} ]]; then
  _${name} "$@"
else
  compdef _${name} ${name}
fi
`;
}

function groupCase(table: CommandTable, group: string): string {
  const below = table.commands.filter(({ name }) => name.startsWith(`${group} `));
  const names = belowGroup(table, group);
  const list = below.map((command, at) => described(names[at] ?? "", command.description));
  return `        ${group})
          _arguments -C '1: :->command' '*:: :->rest' && return
          case $state in
            command)
              local -a commands=(
${list.map((each) => `                ${each}`).join("\n")}
              )
              _describe command commands
              ;;
            rest)
              case $words[1] in
${below.map((command, at) => `                ${names[at]}) ${argumentsOf(command)} ;;`).join("\n")}
              esac
              ;;
          esac
          ;;`;
}

function argumentsOf(command: TableCommand): string {
  const specs = [
    ...command.options.map(specOf),
    ...command.arguments.map(({ usage, completes }) => {
      const many = usage.includes("...") ? "*" : "";
      const optional = usage.startsWith("[") ? ":" : "";
      return quoted(
        `${many}:${optional}${escaped(usage.replaceAll(/[<>[\].]/g, ""))}:${actionOf(completes)}`,
      );
    }),
  ];
  return `_arguments ${specs.join(" ")}`;
}

/** `'(-p --port)'{-p,--port}'[port of the service]:n:'`. */
function specOf({ short, long, value, completes, description }: TableOption): string {
  const what = `[${escaped(description)}]`;
  const takes =
    value === undefined ? "" : `:${escaped(value.replaceAll(/[<>[\]]/g, ""))}:${actionOf(completes)}`;
  return short === undefined
    ? quoted(`${long}${what}${takes}`)
    : `${quoted(`(${short} ${long})`)}{${short},${long}}${quoted(`${what}${takes}`)}`;
}

function actionOf(completes: Completes): string {
  if (typeof completes !== "string") return `(${completes.join(" ")})`;
  switch (completes) {
    case "folder":
      return "_files -/";
    case "file":
    case "path":
      return "_files";
    case "source":
      return "_kbsync_sources";
    case "agent":
      return "_kbsync_agents";
    case "words":
      return " ";
  }
}

function described(name: string, description: string): string {
  return quoted(`${name.replaceAll(":", "\\:")}:${description}`);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\:[\]]/g, String.raw`\$&`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
