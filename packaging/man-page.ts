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

/** Environment variables that the program reads. */
export const ENVIRONMENT: readonly (readonly [name: string, meaning: string])[] = [
  ["KBSYNC_CONFIG", "the configuration file, unless --config names one"],
  ["KBSYNC_STATE_DIR", "the state folder, unless --state-dir names one; overrides the configuration"],
  [
    "KBSYNC_PORT",
    "the port of up and serve, unless --port names one; overrides the configuration, except for 0, any free port",
  ],
  [
    "KBSYNC_DATABASE",
    "the PostgreSQL database of the embedded service, also with a password; overrides service.database in the configuration",
  ],
  ["HTTPS_PROXY", "the proxy for https addresses of a hosted service and of models elsewhere"],
  ["HTTP_PROXY", "the proxy for http addresses, and for https without HTTPS_PROXY"],
  ["NO_PROXY", "hosts that are reached directly, separated by commas; this machine always is"],
  ["KBSYNC_PAUTHKEY", "the key for a hosted service, one line"],
  ["KBSYNC_LOG", "log level: debug, info (default), warn, error, silent"],
  ["KBSYNC_LOG_FORMAT", "format of log lines: text (default), json"],
  ["STATE_DIRECTORY", "the state folder, set by systemd; used unless another is named"],
  ["XDG_STATE_HOME", "unless a state folder is named, it is `kbsync` below this folder"],
  [
    "XDG_RUNTIME_DIR",
    "running instances register in kbsync below it, so that commands in any folder find them",
  ],
  ["CREDENTIALS_DIRECTORY", "folder with the keys that systemd passes to kbsync; set by systemd"],
  ["NOTIFY_SOCKET", "socket for kbsync's state reports to systemd; set by systemd"],
  ["WATCHDOG_USEC", "how often systemd expects a sign of life; set by systemd"],
  ["KBSYNC_UNIT", "set in units that mount each source separately"],
  ["JOURNAL_STREAM", "set by systemd if standard error is its journal"],
  ["CACHE_DIRECTORY", "cache of compiled code, as systemd sets it; else $XDG_CACHE_HOME/kbsync"],
];

/** Files and folders of the program. */
export const FILES: readonly (readonly [path: string, meaning: string])[] = [
  [
    "./kbsync.config.json",
    "the configuration, unless another is named; docs/CONFIG.md in the package explains every key",
  ],
  ["/etc/kbsync/kbsync.config.json", "the configuration of the systemd unit"],
  [
    "~/.local/state/kbsync",
    "the state folder: key, ledger, the embedded service's data and the control socket; /var/lib/kbsync for the systemd unit",
  ],
];
