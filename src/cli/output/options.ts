import { GlobText } from "../../config/schema/source.ts";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ConfigRequest, NamedFolder } from "../../config/load.ts";
import { Expand, NEIGHBOURS_MAX } from "../../wire/context.ts";
import { Tier } from "../../wire/primitives.ts";
import { WAIT_SECONDS_MAX } from "../../wire/daemon.ts";
import type { Context } from "./context.ts";

/** Options of every command. */
export interface CommonOptions {
  readonly config?: string;
  readonly stateDir?: string;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFormat?: string;
}

/** Builds the request for the configuration. */
export function configRequest(
  context: Context,
  options: CommonOptions & { readonly port?: number },
  folders?: readonly NamedFolder[],
): ConfigRequest {
  return {
    file: options.config,
    stateDir: options.stateDir,
    port: options.port,
    folders,
    cwd: context.cwd,
    env: context.env,
  };
}

/** Options of a command that syncs folders. */
export interface SourceOptions extends CommonOptions {
  readonly tier?: Tier;
  /** Tier of folders that neither the configuration nor the ledger knows, unless `tier` names one. */
  readonly newTier?: Tier;
  /** Whether a person chose `newTier`. */
  readonly wasAsked?: boolean;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
}

/** The tier of the folders that a command names. */
export function tierOption(): Option {
  return new Option(
    "--tier <tier>",
    "how the folders are searched: fastest (words), moderate (also meaning), high_accuracy (also compares sentences)",
  ).choices(Tier.options);
}

/** Adds the options that say how folders are synced by this run alone. */
export function addSourceOptions(command: Command): Command {
  return command
    .addOption(tierOption())
    .option(
      "--include <glob...>",
      "sync only files that match these globs (instead of the configured include)",
      globs,
    )
    .option(
      "--exclude <glob...>",
      "leave out files that match these globs, and delete their documents",
      globs,
    );
}

/** Longest wait of --fresh by default, in seconds: people wait so long for an answer. */
const FRESH_SECONDS_DEFAULT = 10;

/** Options of a question that may wait for a fresh answer. */
export interface FreshOptions {
  readonly fresh?: boolean;
  readonly wait: number;
}

/** Adds the options of a question that may wait for a fresh answer. */
export function addFreshOptions(command: Command): Command {
  return command
    .option("--fresh", "first wait until everything saved before is searchable")
    .option(
      "--wait <seconds>",
      "maximum wait of --fresh",
      wholeNumber(1, WAIT_SECONDS_MAX),
      FRESH_SECONDS_DEFAULT,
    );
}

/** Returns the seconds that a question waits; undefined: it does not wait. */
export function waitSecondsOf({ fresh, wait }: FreshOptions): number | undefined {
  return fresh === true ? wait : undefined;
}

/** Returns a parser for an option with a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
  };
}

/** Parses an option with a filter of a search. The service checks its conditions. */
export function filterOption(text: string): object {
  try {
    const filter: unknown = JSON.parse(text);
    if (typeof filter === "object" && filter !== null) return filter;
  } catch {
    // Reported below, with the expected form.
  }
  throw new InvalidArgumentError('expected conditions as JSON, such as {"tags": "draft"}');
}

/** Parses how much text around a hit to read. */
export function expandOption(text: string): Expand {
  const expand = Expand.safeParse(text);
  if (expand.success) return expand.data;
  throw new InvalidArgumentError(`expected neighbours, or a number from 1 to ${NEIGHBOURS_MAX}`);
}

/** Adds a glob to those before it. */
function globs(value: string, before: readonly string[] = []): readonly string[] {
  const checked = GlobText.safeParse(value);
  if (!checked.success) throw new InvalidArgumentError(checked.error.issues[0]?.message ?? "expected a glob");
  return [...before, value];
}
