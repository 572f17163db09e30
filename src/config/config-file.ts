import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import stripJsonComments from "strip-json-comments";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";
import { similarTo } from "../lib/similar.ts";
import { schemaProblems } from "../lib/schema-issue.ts";
import { packagePath } from "../lib/package.ts";
import { knownKeys } from "./json-schema.ts";
import { ConfigFile } from "./schema.ts";

/** Name of the configuration file in the working folder. */
export const CONFIG_FILE_NAME = "kbsync.config.json";
/** The installed manual of the configuration, as an absolute path that can be opened from any folder. */
export const CONFIG_MANUAL = packagePath("docs/CONFIG.md");
/** Largest configuration file; a larger one is a mistake. */
const CONFIG_BYTES_MAX = 4 * 1024 * 1024;

/** Where to find the configuration file. */
export interface FileRequest {
  /** `--config`. */
  readonly file?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Parses and checks a configuration file, JSON with comments. Messages quote `name`. */
export function parseConfig(text: string, name: string): ConfigFile {
  return checkConfig(parseJson(text, name), name);
}

/** Replaces comments and trailing commas of JSON by spaces, so that positions stay the same and an error names the right line. */
export function withoutComments(text: string): string {
  return stripJsonComments(text, { trailingCommas: true });
}

/** Parses JSON with comments. Throws `config_invalid`, which quotes `name`. */
export function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(withoutComments(text));
  } catch (error) {
    throw new KbsyncError(`${name} is not JSON: ${messageOf(error)}`, {
      code: "config_invalid",
      subject: name,
      cause: error,
    });
  }
}

/** Checks a configuration and adds the defaults. Throws `config_invalid`, which quotes `name`. */
export function checkConfig(value: unknown, name: string): ConfigFile {
  const result = ConfigFile.safeParse(value);
  if (result.success) return result.data;
  const lines = schemaProblems(result.error, value).map(({ path, message }) => {
    const subject = path === "" ? "the file" : path;
    return message === "unknown key"
      ? `${subject}: unknown key, ${expectedKeys(path)}`
      : `${subject}: ${message}`;
  });
  throw new KbsyncError(`${name}: ${lines.join(`\n${name}: `)}`, {
    code: "config_invalid",
    subject: name,
    hint: `${CONFIG_MANUAL} explains every key; kbsync.schema.json lets an editor check while you type.`,
  });
}

function expectedKeys(path: string): string {
  const parent = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
  const known = knownKeys(parent);
  const meant = similarTo(path.slice(path.lastIndexOf(".") + 1), known);
  return meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean ${meant}?`;
}

/** Returns the configuration file that a request means, which may be missing if it is named; undefined: there is none. */
export function findConfigFile(request: FileRequest): string | undefined {
  const named = request.file ?? request.env["KBSYNC_CONFIG"];
  if (named !== undefined && named !== "") return resolve(request.cwd, named);
  const here = join(request.cwd, CONFIG_FILE_NAME);
  return existsSync(here) ? here : undefined;
}

/** Reads the text of a configuration file. Throws `config_not_found`, `config_unreadable` and `config_invalid`. */
export function readConfigFile(file: string): string {
  try {
    const bytes = readFileSync(file);
    if (bytes.length > CONFIG_BYTES_MAX) {
      throw new KbsyncError(`${file} has ${bytes.length} bytes, expected at most ${CONFIG_BYTES_MAX}`, {
        code: "config_invalid",
        subject: file,
      });
    }
    return bytes.toString("utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    if (error instanceof KbsyncError) throw error;
    if (codeOf(error) === "ENOENT") {
      throw new KbsyncError(`there is no configuration file ${file}`, {
        code: "config_not_found",
        subject: file,
        hint: "`kbsync init FOLDER` writes one.",
        cause: error,
      });
    }
    throw new KbsyncError(`cannot read the configuration ${file}: ${messageOf(error)}`, {
      code: "config_unreadable",
      subject: file,
      cause: error,
    });
  }
}
