import { isatty } from "node:tty";
import { Command, Option } from "commander";
import type { Context } from "./output/context.ts";
import { invocationOf } from "./output/hint.ts";
import { writeError } from "./output/journal.ts";
import { logFormat, logLevel } from "./terminal/log.ts";
import { EXIT_WORDS } from "./output/exit-code.ts";
import { addExamples, examplesOf } from "./manual/examples.ts";
import { useRunningInstance } from "./state/find-instance.ts";
import type { CommonOptions } from "./output/options.ts";
import { programVersion } from "./output/version.ts";
import { fitTerminal, helpText } from "./terminal/help-layout.ts";
import { prose } from "./terminal/prose.ts";

type AddCommand = (program: Command, context: Context) => void;

/** The commands in the groups of the help, each with what loads it. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, () => Promise<AddCommand>>>>> = {
  "Start and set up": {
    up: async () => (await import("./commands/up.ts")).addUp,
    run: async () => (await import("./commands/run.ts")).addRun,
    serve: async () => (await import("./commands/serve.ts")).addServe,
    sync: async () => (await import("./commands/sync.ts")).addSync,
    init: async () => (await import("./commands/init.ts")).addInit,
    service: async () => (await import("./systemd/service.ts")).addService,
  },
  Folders: {
    add: async () => (await import("./commands/add.ts")).addAdd,
    remove: async () => (await import("./commands/remove.ts")).addRemove,
  },
  Search: {
    search: async () => (await import("./commands/search.ts")).addSearch,
    ask: async () => (await import("./commands/question.ts")).addAsk,
    eval: async () => (await import("./commands/eval.ts")).addEval,
    mcp: async () => (await import("./commands/mcp.ts")).addMcp,
  },
  Inspect: {
    status: async () => (await import("./commands/status.ts")).addStatus,
    why: async () => (await import("./commands/why.ts")).addWhy,
    log: async () => (await import("./commands/activity.ts")).addLog,
    wait: async () => (await import("./commands/wait.ts")).addWait,
    doctor: async () => (await import("./commands/doctor.ts")).addDoctor,
  },
  Control: {
    pause: async () => (await import("./commands/pause.ts")).addPause,
    resume: async () => (await import("./commands/pause.ts")).addResume,
    retry: async () => (await import("./commands/retry.ts")).addRetry,
    approve: async () => (await import("./commands/approve.ts")).addApprove,
    undelete: async () => (await import("./commands/undelete.ts")).addUndelete,
    erase: async () => (await import("./commands/erase.ts")).addErase,
    verify: async () => (await import("./commands/verify.ts")).addVerify,
  },
  Maintenance: {
    backup: async () => (await import("./commands/backup.ts")).addBackup,
    restore: async () => (await import("./commands/restore.ts")).addRestore,
    key: async () => (await import("./commands/key.ts")).addKey,
    models: async () => (await import("./commands/models.ts")).addModels,
  },
};

const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = Object.assign(
  {},
  ...Object.values(GROUPS),
);

/**
 * The commands that a command line needs: its first word, because loading all of them takes as long as most commands run; none for
 * the version. All of them for help and unknown commands, which list each.
 */
function namesToLoad([first = ""]: readonly string[]): readonly string[] {
  if (first === "--version" || first === "-V") return [];
  return Object.hasOwn(COMMANDS, first) ? [first] : Object.keys(COMMANDS);
}

/**
 * Builds the program with the command that `args` start with, or with all commands; nothing runs before it parses a command
 * line. `args` are quoted if a person has to choose an instance.
 */
export async function buildProgram(context: Context, args: readonly string[] = []): Promise<Command> {
  const program = fitTerminal(new Command("kbsync"))
    .description(
      "Keeps a folder of documents and a knowledge base in exact agreement. Includes a knowledge base, if you have none.",
    )
    .version(programVersion())
    .exitOverride()
    .configureOutput({
      writeErr: (text) =>
        writeError(
          prose({ stdout: standardError, invocation: { ...invocationOf(context, {}), options: "" } }, text),
        ),
      // The prefix of all other errors, and a sentence with a capital.
      outputError: (text, write) =>
        write(
          text
            .replace(/^error: (?:command-argument )?/, "kbsync: ")
            .replace(" is invalid. expected ", " is invalid: expected "),
        ),
    })
    .showHelpAfterError("`kbsync --help` lists the commands.")
    .addHelpCommand(helpCommand("Maintenance:"))
    .addHelpText("after", () => helpText(afterHelp()));
  for (const name of namesToLoad(args)) (await COMMANDS[name]?.())?.(program, context);
  for (const command of program.commands) command.helpGroup(groupOf(command.name()));
  program.hook("preAction", (_, command) => {
    const options = command.opts<CommonOptions & Printed>();
    setLog(context, options);
    context.invocation = invocationOf(context, options);
    const isWhole = options.json === true || options.print === true || options.report === true;
    context.isVerbatim = isWhole || VERBATIM.has(command.name());
    useRunningInstance(context, command, args);
  });
  addCommonOptions(program);
  return program;
}

/** `kbsync help COMMAND`. */
function helpCommand(heading: string): Command {
  return new Command("help")
    .argument("[command]")
    .helpOption(false)
    .description("show the help of a command")
    .helpGroup(heading);
}

/** Heading of a command's group. */
function groupOf(name: string): string {
  const [heading = ""] = Object.entries(GROUPS).find(([, group]) => Object.hasOwn(group, name)) ?? [];
  return `${heading}:`;
}

/** Examples and exit codes below the list of commands. */
function afterHelp(): string {
  const codes = EXIT_WORDS.map(([code, meaning]) => `  ${String(code).padEnd(5)}  ${meaning}`);
  const examples = examplesOf("").map((line) => `  ${line}`);
  return ["", "Examples:", ...examples, "", "Exit codes:", ...codes].join("\n");
}

/** Adds the options that every command has, and its examples. */
function addCommonOptions(program: Command): void {
  const groups = program.commands.filter(({ commands }) => commands.length > 0);
  for (const group of groups) addExamples(group.addHelpCommand(helpCommand("Commands:")), "");
  for (const command of program.commands.flatMap((one) => (one.commands.length > 0 ? one.commands : [one]))) {
    const prefix = command.parent === program ? "" : `${command.parent?.name() ?? ""} `;
    addExamples(command, prefix);
    command
      .showHelpAfterError(`\`kbsync ${prefix}${command.name()} --help\` shows its options.`)
      .exitOverride()
      .option(
        "-c, --config <file>",
        "configuration file (default: $KBSYNC_CONFIG, else ./kbsync.config.json)",
      )
      .option(
        "--state-dir <dir>",
        "folder for the key, the ledger and the service's data (overrides the configuration)",
      )
      .option("-q, --quiet", "print only results and errors")
      .option("-v, --verbose", "log every step")
      .addOption(new Option("--log-format <format>", "format of log lines").choices(["text", "json"]));
  }
}

/** Options that print output for programs. */
interface Printed {
  readonly json?: boolean;
  readonly print?: boolean;
  readonly report?: boolean;
}

/** Applies the options of the log, which override the environment. Throws `usage` for an unknown level or format. */
function setLog(context: Context, { quiet, verbose, logFormat: format }: CommonOptions): void {
  const { env } = context;
  if (quiet === true) env["KBSYNC_LOG"] = "error";
  else if (verbose === true) env["KBSYNC_LOG"] = "debug";
  if (format !== undefined) env["KBSYNC_LOG_FORMAT"] = format;
  context.isQuiet = quiet === true;
  logLevel(env);
  logFormat(env);
}

/** Commands that print the contents of documents. */
const VERBATIM: ReadonlySet<string> = new Set(["search", "ask", "eval", "mcp"]);

/** Standard error, for the width of messages. */
export const standardError = {
  isTTY: isatty(2),
  get columns() {
    return process.stderr.columns;
  },
};
