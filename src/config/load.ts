import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { z } from "zod";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";
import { homeFolder } from "../lib/home.ts";
import { isExposed, isLoopback } from "../lib/loopback.ts";
import { similarTo } from "../lib/similar.ts";
import { pathBelow } from "../lib/path-below.ts";
import { schemaProblems } from "../lib/schema-issue.ts";
import { withoutComments } from "./comments.ts";
import { filesOf, isBucket } from "./files.ts";
import { databaseHost, databaseProblem, hasPassword } from "./database.ts";
import { CONFIG_MANUAL } from "./manual.ts";
import { knownKeys } from "./json-schema.ts";
import type { Tier } from "../wire/primitives.ts";
import {
  CONCURRENCY_EMBEDDED,
  CONCURRENCY_HOSTED,
  ConfigFile,
  type KbConfig,
  type MetricsConfig,
  type NotifyConfig,
  type ServiceConfig,
  type SourceConfig,
  type SyncConfig,
} from "./schema.ts";

/** Name of the configuration file in the working folder. */
export const CONFIG_FILE_NAME = "kbsync.config.json";
/** Largest configuration file; a larger one is a mistake. */
const CONFIG_BYTES_MAX = 4 * 1024 * 1024;

/** Matches a configuration with a port of the embedded service. */
const NamedPort = z.object({ service: z.object({ port: z.number() }) });

/** A source with absolute path and known owner. */
export interface ResolvedSource extends SourceConfig {
  readonly absolutePath: string;
  readonly ownerId: string;
}

/** The configuration with absolute paths and all defaults. */
export interface Config {
  /** The file it was read from; undefined: only defaults. */
  readonly file: string | undefined;
  readonly service: ServiceConfig;
  readonly stateDir: string;
  readonly sources: readonly ResolvedSource[];
  readonly sync: SyncConfig;
  /** Of the embedded service. */
  readonly kb: KbConfig;
  readonly metrics: MetricsConfig;
  readonly notify: NotifyConfig;
}

/** A folder on the command line. What is left out is as configured for it, else the default. */
export interface NamedFolder {
  readonly path: string;
  readonly collection?: Tier;
  readonly ownerId?: string;
  /** Replaces the configured globs. */
  readonly include?: readonly string[];
  /** Joins the configured globs. */
  readonly exclude?: readonly string[];
}

/** Where to find the configuration file. */
export interface FileRequest {
  /** `--config`. */
  readonly file?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Settings of the command line and the environment. */
export interface ConfigRequest extends FileRequest {
  /** `--state-dir`. */
  readonly stateDir?: string | undefined;
  /** Folders on the command line, which become the only sources. */
  readonly folders?: readonly NamedFolder[] | undefined;
  /** `--port` of the embedded service. */
  readonly port?: number | undefined;
}

/**
 * Finds, reads and checks the configuration: `--config`, else `KBSYNC_CONFIG`, else `kbsync.config.json` in the working
 * folder, else defaults. Throws `config_invalid` with JSON path, expected and actual value, and `config_not_found` if a
 * named file is missing.
 */
export function loadConfig(request: ConfigRequest): Config {
  const file = findConfigFile(request);
  const written = file === undefined ? {} : jsonOf(readFile(file), file);
  const parsed = withDatabase(checked(written, file ?? "the defaults"), file ?? "the defaults", request.env);
  const folder = file === undefined ? request.cwd : dirname(file);
  const configured = parsed.sources.map((source) => resolveSource(source, folder));
  const sources =
    request.folders?.map((named) =>
      folderSource(configured, { ...named, path: resolve(request.cwd, named.path) }),
    ) ?? configured;
  const config = {
    file,
    service: servicePort(
      absoluteService(parsed.service, folder),
      request.port,
      environmentPort(written, request.env),
    ),
    stateDir: stateDirOf(request, parsed.stateDir, folder),
    sources,
    sync: {
      ...parsed.sync,
      concurrency: parsed.sync.concurrency ?? defaultConcurrency(parsed.service),
      blockSecrets: parsed.sync.blockSecrets ?? leavesMachine(parsed),
    },
    kb: absoluteKb(parsed.kb, folder),
    metrics: parsed.metrics,
    notify: parsed.notify,
  };
  checkFolders(config);
  return config;
}

/** Parses and checks a configuration file, JSON with comments. Messages quote `name`. */
export function parseConfig(text: string, name: string): ConfigFile {
  return checked(jsonOf(text, name), name);
}

function jsonOf(text: string, name: string): unknown {
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

function checked(value: unknown, name: string): ConfigFile {
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

/**
 * Throws `source_overlap` if two sources overlap, or if a source contains the state folder or the one of uploaded files, whose writes
 * would be synced for ever.
 */
function checkFolders({
  sources,
  stateDir,
  service,
}: {
  readonly sources: readonly { readonly absolutePath: string }[];
  readonly stateDir: string;
  readonly service: ServiceConfig;
}): void {
  const files = filesOf(service);
  const roots = sources.map(({ absolutePath }) => ({ path: absolutePath, real: realPath(absolutePath) }));
  const realState = realPath(stateDir);
  for (const [index, { path, real }] of roots.entries()) {
    const other = roots.find(
      (root, at) =>
        at < index && (pathBelow(root.real, real) !== undefined || pathBelow(real, root.real) !== undefined),
    );
    if (other !== undefined) {
      throw new KbsyncError(`the sources ${other.path} and ${path} overlap`, {
        code: "source_overlap",
        subject: path,
        hint: "List the outer folder alone, or exclude the inner one there and watch it from another configuration.",
      });
    }
    if (liesIn(realState, real)) {
      throw new KbsyncError(`the state folder ${stateDir} lies inside the source ${path}`, {
        code: "source_overlap",
        subject: stateDir,
        hint: "Choose a stateDir elsewhere, or one whose name begins with a dot.",
      });
    }
    if (files?.kind === "folder" && liesIn(realPath(files.path), real)) {
      throw new KbsyncError(`the folder of uploaded files ${files.path} lies inside the source ${path}`, {
        code: "source_overlap",
        subject: files.path,
        hint: "Choose a folder elsewhere in service.files.",
      });
    }
  }
}

/**
 * Returns the source folder that contains a path, existing or not: what is written there becomes documents. Undefined for
 * a path outside all sources or below a hidden folder, which is never synced. All paths are absolute.
 */
export function sourceAround(path: string, folders: readonly string[]): string | undefined {
  const real = realPath(path);
  return folders.find((folder) => liesIn(real, realPath(folder)));
}

/** Whether a scan of a folder covers a path: inside it, and in no hidden folder. Both without symbolic links. */
function liesIn(path: string, folder: string): boolean {
  const below = pathBelow(folder, path);
  return below !== undefined && !below.split(sep).some((part) => part.startsWith("."));
}

/** Resolves symbolic links as far as the path exists, so that two spellings of one folder become equal. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
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

function readFile(file: string): string {
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

function absoluteService(service: ServiceConfig, folder: string): ServiceConfig {
  if ("embedded" in service) {
    const { modelDir, databasePasswordFile: passwordFile, files } = service;
    return {
      ...service,
      ...(modelDir !== undefined && { modelDir: absolutePathOf(folder, modelDir) }),
      ...(passwordFile !== undefined && { databasePasswordFile: absolutePathOf(folder, passwordFile) }),
      ...(files !== undefined && !isBucket(files) && { files: absolutePathOf(folder, files) }),
    };
  }
  if (service.pauthkeyFile === undefined) return service;
  return { ...service, pauthkeyFile: absolutePathOf(folder, service.pauthkeyFile) };
}

function absoluteKb(kb: KbConfig, folder: string): KbConfig {
  const { dataDir } = kb.ocr;
  const ocr = dataDir === undefined ? kb.ocr : { ...kb.ocr, dataDir: resolve(folder, dataDir) };
  return {
    ...kb,
    ocr,
    embedding: withAbsoluteKey(kb.embedding, folder),
    ...(kb.languageModel && { languageModel: withAbsoluteKey(kb.languageModel, folder) }),
    ...(kb.reranker && { reranker: withAbsoluteKey(kb.reranker, folder) }),
  };
}

function withAbsoluteKey<T extends { apiKeyFile?: string | undefined }>(service: T, folder: string): T {
  const { apiKeyFile } = service;
  return apiKeyFile === undefined ? service : { ...service, apiKeyFile: absolutePathOf(folder, apiKeyFile) };
}

function defaultConcurrency(service: ServiceConfig): number {
  return "embedded" in service ? CONCURRENCY_EMBEDDED : CONCURRENCY_HOSTED;
}

/** Whether text may leave this machine: to a service or a model elsewhere, or because others reach the embedded service. */
function leavesMachine({ service, kb }: Pick<ConfigFile, "service" | "kb">): boolean {
  const models = [kb.embedding.baseUrl, kb.languageModel?.baseUrl, kb.reranker?.url];
  const hosts = "embedded" in service ? models : [service.apiUrl, service.dbUrl, service.resourcesUrl];
  if ("embedded" in service) {
    if (isExposed(service)) return true;
    const { database } = service;
    if (database !== undefined && !isLoopback(databaseHost(database) ?? "localhost")) return true;
    if (isBucket(service.files) && !isLoopback(URL.parse(service.s3?.endpoint ?? "")?.hostname ?? ""))
      return true;
  }
  return hosts.some((url) => url !== undefined && !isLoopback(URL.parse(url)?.hostname ?? ""));
}

/**
 * Checks the address of the database, and replaces it by the one in KBSYNC_DATABASE, which alone may contain a password: others may read
 * a configuration. A hosted service has its own. Throws `config_invalid` and `usage`, and quotes no address.
 */
function withDatabase(
  parsed: ConfigFile,
  name: string,
  { KBSYNC_DATABASE: given = "" }: FileRequest["env"],
): ConfigFile {
  const { service } = parsed;
  if (!("embedded" in service)) return parsed;
  const { database: configured, databasePasswordFile: passwordFile } = service;
  const problem =
    configured === undefined
      ? undefined
      : (databaseProblem(configured) ??
        (hasPassword(configured)
          ? "expected no password in the address: put it alone into a file, and name that in service.databasePasswordFile"
          : undefined));
  if (problem !== undefined)
    throw new KbsyncError(`${name}: service.database: ${problem}`, { code: "config_invalid", subject: name });
  const problemOfGiven = given === "" ? undefined : databaseProblem(given);
  if (problemOfGiven !== undefined)
    throw new KbsyncError(`KBSYNC_DATABASE: ${problemOfGiven}`, {
      code: "usage",
      subject: "KBSYNC_DATABASE",
    });
  const database = given === "" ? configured : given;
  if (database !== undefined) return { ...parsed, service: { ...service, database } };
  if (passwordFile === undefined) return parsed;
  throw new KbsyncError(
    `${name}: service.databasePasswordFile: expected service.database, whose password it is`,
    {
      code: "config_invalid",
      subject: name,
    },
  );
}

/** `asked` is the port of the command line, `fromEnvironment` that of KBSYNC_PORT; either overrides the configuration. */
function servicePort(
  service: ServiceConfig,
  asked: number | undefined,
  fromEnvironment: number | undefined,
): ServiceConfig {
  if ("embedded" in service) return { ...service, port: asked ?? fromEnvironment ?? service.port };
  if (asked === undefined) return service;
  throw new KbsyncError("--port is for the embedded service, but the configuration names a hosted one", {
    code: "usage",
  });
}

/**
 * Returns the port in KBSYNC_PORT. 0, any free port, gives way to a port in the configuration: a user's unit sets it and cannot
 * know what the configuration will name. Throws `usage`.
 */
function environmentPort(
  written: unknown,
  { KBSYNC_PORT: port = "" }: FileRequest["env"],
): number | undefined {
  if (port === "") return undefined;
  if (/^\d{1,5}$/.test(port) && Number(port) <= 65_535) {
    const isNamed = Number(port) === 0 && NamedPort.safeParse(written).success;
    return isNamed ? undefined : Number(port);
  }
  throw new KbsyncError(`KBSYNC_PORT: expected a port from 0 to 65535, got ${JSON.stringify(port)}`, {
    code: "usage",
  });
}

function stateDirOf(request: ConfigRequest, configured: string | undefined, folder: string): string {
  const named = request.stateDir ?? request.env["KBSYNC_STATE_DIR"] ?? "";
  if (named !== "") return resolve(request.cwd, named);
  if (configured !== undefined) return absolutePathOf(folder, configured);
  const { STATE_DIRECTORY: unit, XDG_STATE_HOME: xdg } = request.env;
  // systemd separates several state directories with colons; the first is ours.
  if (unit !== undefined && unit !== "") return resolve(unit.split(":")[0] ?? unit);
  if (xdg !== undefined && xdg !== "") return join(resolve(xdg), "kbsync");
  const home = homeFolder("Name the state folder with --state-dir, or stateDir in the configuration.");
  return join(home, ".local", "state", "kbsync");
}

/** Makes a path of the configuration absolute. `~/` is the home folder. */
function absolutePathOf(folder: string, path: string): string {
  if (path === "~" || path.startsWith("~/")) return join(homeFolder(`Write ${path} in full.`), path.slice(1));
  return resolve(folder, path);
}

function resolveSource(source: SourceConfig, folder: string): ResolvedSource {
  const absolutePath = absolutePathOf(folder, source.path);
  return { ...source, absolutePath, ownerId: source.ownerId ?? defaultOwner(absolutePath) };
}

/** Returns the configured source for a folder, else one with the defaults, with what the command line says of it. */
function folderSource(
  sources: readonly ResolvedSource[],
  { path, include, exclude = [], ...named }: NamedFolder,
): ResolvedSource {
  const configured = sources.find((source) => source.absolutePath === path);
  const globs = { ...(include && { include }), exclude: [...(configured?.exclude ?? []), ...exclude] };
  const asked = { path, ...named, ...globs };
  const [source] = checked({ sources: [asked] }, "the command line").sources;
  if (source === undefined) throw new Error("unreachable: one source went in");
  if (configured === undefined) return resolveSource(source, "/");
  return { ...configured, ...named, ...(include && { include: source.include }), exclude: source.exclude };
}

/**
 * Returns the folder's name and eight hex digits of its absolute path's SHA-256: readable, stable and distinct, so that
 * sources share resources only if they are configured with one owner.
 */
function defaultOwner(absolutePath: string): string {
  const hash = createHash("sha256").update(absolutePath).digest("hex").slice(0, 8);
  return `${basename(absolutePath) || "root"}-${hash}`;
}
