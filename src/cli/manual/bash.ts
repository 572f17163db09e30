import type { CommandTable, Completes, TableCommand, TableOption } from "./command-table.ts";

/** Generates the completion script for bash 4 and later. */
export function bashCompletion(table: CommandTable): string {
  const { name, groups, commands } = table;
  const top = [
    ...new Set([
      ...commands.map((one) => one.name.split(" ")[0] ?? ""),
      ...groups.map((group) => group.name),
      "help",
    ]),
  ];
  return `# bash completion for ${name}, made by \`${name} completion bash\`
_${name}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command= word index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    case "$command $word" in
${commands.flatMap(valueKeys).join("\n")}
${commands
  .map((one) => one.name)
  .concat(groups.map((group) => group.name))
  .map((each) => `      "${commandKey(each)}") command="${each}" ;;`)
  .join("\n")}
    esac
  done
  case "$command $prev" in
${commands.flatMap((command) => command.options.filter(({ value }) => value !== undefined).map((option) => valueCase(command.name, option))).join("\n")}
  esac
  if [[ $cur == -* ]]; then
    case $command in
      "") COMPREPLY=($(compgen -W "${flagsOf(table.options)}" -- "$cur")) ;;
${commands.map((command) => `      "${command.name}") COMPREPLY=($(compgen -W "${flagsOf(command.options)}" -- "$cur")) ;;`).join("\n")}
    esac
    return
  fi
  case $command in
    "") COMPREPLY=($(compgen -W "${top.join(" ")}" -- "$cur")) ;;
${groups.map((group) => `    "${group.name}") COMPREPLY=($(compgen -W "${belowGroup(table, group.name).join(" ")}" -- "$cur")) ;;`).join("\n")}
${commands
  .filter((command) => command.arguments.length > 0)
  .map((command) => `    "${command.name}") ${replyOf(command.arguments[0]?.completes ?? "words")} ;;`)
  .join("\n")}
  esac
}
# Adds lines that begin with the typed word. compgen -W would run what stands in them.
_${name}_lines() {
  local line
  while IFS= read -r line; do
    [[ $line == "$cur"* ]] && COMPREPLY+=("$line")
  done < <(${name} completion --list "$1" 2>/dev/null)
}
complete -o filenames -F _${name} ${name}
`;
}

/** Returns the names of the commands in a group. */
export function belowGroup(table: CommandTable, group: string): string[] {
  return table.commands
    .filter(({ name }) => name.startsWith(`${group} `))
    .map(({ name }) => name.slice(group.length + 1));
}

/** Key of a command in the script: its group and the word that completes its name. */
function commandKey(name: string): string {
  return name.includes(" ") ? name : ` ${name}`;
}

/** Skips the values of options, which are no commands. */
function valueKeys({ name, options }: TableCommand): string[] {
  const keys = options
    .filter(({ value }) => value !== undefined)
    .flatMap(({ short, long }) => (short === undefined ? [long] : [short, long]))
    .map((flag) => `"${name} ${flag}"`);
  return keys.length === 0 ? [] : [`      ${keys.join("|")}) ((index++)) ;;`];
}

function flagsOf(options: readonly TableOption[]): string {
  return options.flatMap(({ short, long }) => (short === undefined ? [long] : [long, short])).join(" ");
}

function valueCase(command: string, { short, long, completes }: TableOption): string {
  const flags = short === undefined ? [long] : [short, long];
  return `    ${flags.map((flag) => `"${command} ${flag}"`).join("|")}) ${replyOf(completes)}; return ;;`;
}

function replyOf(completes: Completes): string {
  if (typeof completes !== "string") return `COMPREPLY=($(compgen -W "${completes.join(" ")}" -- "$cur"))`;
  switch (completes) {
    case "folder":
      return `local IFS=$'\\n'; COMPREPLY=($(compgen -d -- "$cur"))`;
    case "file":
    case "path":
      return `local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$cur"))`;
    case "source":
      return `local IFS=$'\\n'; COMPREPLY=($(compgen -d -- "$cur")); _kbsync_lines sources`;
    case "agent":
      return "_kbsync_lines agents";
    case "words":
      return "COMPREPLY=()";
  }
}
