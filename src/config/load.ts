import { createHash } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";
import { homeFolder } from "../lib/home.ts";
import { isExposed, isLoopback } from "../lib/loopback.ts";
import { isBucket } from "./schema/files.ts";
import { databaseHost } from "./database.ts";
import type { Tier } from "../wire/primitives.ts";
import { CONCURRENCY_EMBEDDED, CONCURRENCY_HOSTED, SYNC_CONSTANTS, type SyncConfig } from "./schema/sync.ts";
import { ConfigFile, type KbConfig, type ServiceConfig, type SourceConfig } from "./schema.ts";
import { type FileRequest, findConfigFile, parseJson, readConfigFile, checkConfig } from "./config-file.ts";
import { withDatabase, servicePort, environmentPort } from "./environment.ts";
import { absoluteService, absoluteKb, absolutePathOf } from "./paths.ts";
import { checkFolders, checkIds, innerFolders } from "./folders.ts";

/** A source with absolute path and known owner. */
export interface ResolvedSource extends SourceConfig {
  readonly absolutePath: string;
  readonly ownerId: string;
  /** Folders of other sources below this one, relative to it. */
  readonly innerFolders?: readonly string[];
}

/** The configuration with absolute paths and all defaults. */
export interface Config {
  /** The file it was read from; undefined: only defaults. */
  readonly file: string | undefined;
  readonly service: ServiceConfig;
  readonly stateDir: string;
  readonly sources: readonly ResolvedSource[];
  /** Folders of the file that those on the command line replace. */
  readonly replacedFolders: readonly string[];
  readonly sync: SyncConfig;
  /** Settings of the embedded service. */
  readonly kb: KbConfig;
  /** Where monitoring reads metrics, besides the embedded service. */
  readonly metrics: ConfigFile["metrics"];
}

/** A folder on the command line. What is left out is as configured for it, else the default. */
export interface NamedFolder {
  readonly path: string;
  readonly collection?: Tier;
  readonly ownerId?: string;
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
  const written = file === undefined ? {} : parseJson(readConfigFile(file), file);
  const parsed = withDatabase(
    checkConfig(written, file ?? "the defaults"),
    file ?? "the defaults",
    request.env,
  );
  const folder = file === undefined ? request.cwd : dirname(file);
  const configured = parsed.sources.map((source) => resolveSource(source, folder));
  const sources =
    request.folders?.map((named) =>
      folderSource(configured, { ...named, path: resolve(request.cwd, named.path) }),
    ) ?? configured;
  // A configured source keeps its files while only the one around it is named.
  const folders = [...configured, ...sources].map(({ absolutePath }) => absolutePath);
  const stateDir = stateDirOf(request, parsed.stateDir, folder);
  const config = {
    file,
    service: servicePort(
      absoluteService(parsed.service, folder),
      request.port,
      environmentPort(written, request.env),
    ),
    stateDir,
    sources: sources.map((source) =>
      Object.assign(source, { innerFolders: innerFolders(source.absolutePath, folders) }),
    ),
    replacedFolders: configured
      .map(({ absolutePath }) => absolutePath)
      .filter((path) => !sources.some(({ absolutePath }) => absolutePath === path)),
    sync: {
      ...SYNC_CONSTANTS,
      ...parsed.sync,
      concurrency: "apiUrl" in parsed.service ? CONCURRENCY_HOSTED : CONCURRENCY_EMBEDDED,
      blockSecrets: leavesMachine(parsed, request.env),
    },
    kb: absoluteKb(parsed.kb, folder, stateDir),
    metrics: parsed.metrics,
  };
  checkFolders(config);
  checkIds(sources);
  return config;
}

/** Whether text may leave this machine: to a service or a model elsewhere, or because others reach the embedded service. */
function leavesMachine({ service, kb }: ConfigFile, env: ConfigRequest["env"]): boolean {
  const models = [kb.embedding.baseUrl, kb.languageModel?.baseUrl, kb.reranker?.url];
  const hosts = "apiUrl" in service ? [service.apiUrl, service.dbUrl, service.resourcesUrl] : models;
  if (!("apiUrl" in service)) {
    if (isExposed(service)) return true;
    const { database } = service;
    if (database !== undefined && !isLoopback(databaseHost(database) ?? "localhost")) return true;
    const bucketAt = env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"] ?? "";
    if (isBucket(service.files) && !isLoopback(URL.parse(bucketAt)?.hostname ?? "")) return true;
  }
  return hosts.some((url) => url !== undefined && !isLoopback(URL.parse(url)?.hostname ?? ""));
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

function resolveSource(source: SourceConfig, folder: string): ResolvedSource {
  const absolutePath = absolutePathOf(folder, source.path);
  return { ...source, absolutePath, ownerId: source.ownerId ?? defaultOwner(absolutePath) };
}

/** Returns the configured source for a folder, else one with the defaults, with what the command line says of it. */
function folderSource(sources: readonly ResolvedSource[], named: NamedFolder): ResolvedSource {
  const [source] = checkConfig({ sources: [named] }, "the command line").sources;
  if (source === undefined) throw new Error("unreachable: one source went in");
  const configured = sources.find(({ absolutePath }) => absolutePath === named.path);
  return configured === undefined
    ? resolveSource(source, "/")
    : { ...configured, ...named, path: configured.path };
}

/**
 * Returns the folder's name and eight hex digits of its absolute path's SHA-256: readable, stable and distinct, so that
 * sources share resources only if they are configured with one owner.
 */
function defaultOwner(absolutePath: string): string {
  const hash = createHash("sha256").update(absolutePath).digest("hex").slice(0, 8);
  return `${basename(absolutePath) || "root"}-${hash}`;
}
