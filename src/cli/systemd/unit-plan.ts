import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { filesOf } from "../../config/schema/files.ts";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { entryUrl, packagePath } from "../../lib/package.ts";
import { instanceUnit, type Program, systemUnit, userUnit, type Credential } from "../../system/unit.ts";
import { escapePath, withDirective } from "../../system/unit-text.ts";
import { HOSTED_KEY_CREDENTIAL } from "../compose/reached-service.ts";
import { PASSWORD_FILE } from "../compose/store.ts";
import type { Context } from "../output/context.ts";
import { type Origin, withOrigin } from "./installed-unit.ts";
import { credentialOf } from "../compose/models.ts";
import {
  type UnitRequest,
  checkForOtherUser,
  checkConfigFolder,
  closedFolders,
  missing,
  topFolders,
} from "./unit-checks.ts";
import { loadSources } from "../state/sources.ts";

/** A unit as planned for this machine. */
export interface UnitPlan {
  /** Its name for systemctl. */
  readonly unit: string;
  /** Path of its file; a folder's unit has that of a template. */
  readonly file: string;
  readonly text: string;
  /** Folder of its data, which no uninstall removes. */
  readonly stateDir: string;
  /** Its properties, each with a name and a description. */
  readonly facts: readonly (readonly [name: string, words: string])[];
  /** Warnings for a person. */
  readonly warnings: readonly string[];
}

/** The paths of a unit's file and data, which do not depend on its contents. */
export type UnitPaths = Pick<UnitPlan, "unit" | "file" | "stateDir">;

const SYSTEM_UNITS = "/etc/systemd/system";
const STATE_FOLDERS = "/var/lib";
/** Returns the unit's name and paths. Reads no file. */
export function unitPaths(context: Context, request: UnitRequest): UnitPaths {
  const folder = request.user === true ? join(configHome(context.env), "systemd", "user") : SYSTEM_UNITS;
  if (request.dir === undefined) {
    const stateDir =
      request.user === true ? join(stateHome(context.env), "kbsync") : join(STATE_FOLDERS, "kbsync");
    return { unit: "kbsync.service", file: join(folder, "kbsync.service"), stateDir };
  }
  if (request.user === true) {
    throw new KbsyncError("a folder with a unit of its own is a system unit", {
      code: "usage",
      hint: "With --user, list the folders under sources in one configuration.",
    });
  }
  const instance = escapePath(resolve(context.cwd, request.dir));
  return {
    unit: `kbsync@${instance}.service`,
    file: join(folder, "kbsync@.service"),
    stateDir: join(STATE_FOLDERS, `kbsync-${instance}`),
  };
}

/**
 * Plans the unit for this machine, user and configuration. `systemd` is its version; if undefined, directives of newer versions
 * are omitted. Throws `usage` for what no unit can do, and what a configuration throws.
 */
export function planUnit(context: Context, request: UnitRequest, systemd?: number): UnitPlan {
  const paths = unitPaths(context, request);
  const plan = planKind(context, request, paths);
  return { ...plan, text: withRestartSteps(plan.text, systemd) };
}

function planKind(context: Context, request: UnitRequest, paths: UnitPaths): UnitPlan {
  if (request.dir !== undefined)
    return planInstance(context, request, paths, resolve(context.cwd, request.dir));
  return request.user === true ? planUser(context, request, paths) : planSystem(context, request, paths);
}

function planInstance(context: Context, request: UnitRequest, paths: UnitPaths, folder: string): UnitPlan {
  const { runAs: user, group: groups = [] } = request;
  const program = thisProgram();
  const text = instanceUnit(template("kbsync@.service"), {
    program,
    groups,
    topFolders: topFolders(),
    ...(user !== undefined && { user }),
  });
  return {
    ...paths,
    text: withOrigin(text, originOf(request, undefined, dirname(paths.stateDir))),
    facts: [
      ["runs", `${program.node} ${program.script} up ${folder}`],
      ["as", user ?? "a user of its own (DynamicUser)"],
      ["reads", `${folder}, and no other data`],
      ["state", paths.stateDir],
    ],
    warnings: closedFolders([folder], request),
  };
}

function planUser(context: Context, request: UnitRequest, paths: UnitPaths): UnitPlan {
  const config = loadSources(context, [], request);
  const program = thisProgram();
  const args = argsOf(config, request);
  return {
    ...paths,
    stateDir: config.stateDir,
    text: withOrigin(
      userUnit(template("user/kbsync.service"), { program, args }),
      originOf(request, config, config.stateDir),
    ),
    facts: [
      ["runs", [program.node, program.script, ...args].join(" ")],
      ["as", "you, with what you can read"],
      ["state", config.stateDir],
    ],
    warnings: config.sources.flatMap(({ absolutePath }) => missing(absolutePath)),
  };
}

function planSystem(context: Context, request: UnitRequest, paths: UnitPaths): UnitPlan {
  // A unit has the state folder that the service manager creates; another one comes from the configuration.
  const env = { ...context.env, STATE_DIRECTORY: paths.stateDir };
  const config = loadSources({ ...context, env }, [], request);
  const { runAs: user, group: groups = [] } = request;
  const file = configFile(config);
  const sources = config.sources.map(({ absolutePath }) => absolutePath);
  checkConfigFolder(file, sources);
  checkForOtherUser(file, config, user, paths.stateDir, groups);
  const program = thisProgram();
  const args = argsOf(config, request);
  const credentials = credentialsOf(config);
  const fileStorage = filesOf(config.service);
  const text = systemUnit(template("kbsync.service"), {
    program,
    args,
    unit: paths.unit,
    groups,
    sources,
    // Mounts its folder: an editor replaces the file, and a mount of the file itself would still show the old one.
    needs: [dirname(file), ...modelFolders(config)],
    credentials,
    topFolders: topFolders(),
    ...(user !== undefined && { user }),
    ...(config.stateDir !== paths.stateDir && { stateDir: config.stateDir }),
    ...(fileStorage?.kind === "folder" && { filesDir: fileStorage.path }),
  });
  return {
    ...paths,
    stateDir: config.stateDir,
    text: withOrigin(text, originOf(request, config, config.stateDir)),
    facts: [
      ["runs", [program.node, program.script, ...args].join(" ")],
      ["as", user ?? "a user of its own (DynamicUser)"],
      ["reads", `${sources.join(", ")}, and no other data`],
      ["state", config.stateDir],
      ...credentials.map(({ id, path }) => ["key", `${path}, passed as ${id}`] as const),
    ],
    warnings: closedFolders(sources, request),
  };
}

function configFile({ file }: Config): string {
  if (file !== undefined) return file;
  throw new KbsyncError("a unit needs a configuration file", {
    code: "usage",
    hint: "Name one with --config, or a folder of its own: `kbsync service install FOLDER`.",
  });
}

function argsOf(config: Config, request: UnitRequest): string[] {
  const command = "apiUrl" in config.service ? "run" : "up";
  const state = request.stateDir === undefined ? [] : ["--state-dir", config.stateDir];
  return [command, "--config", configFile(config), ...state];
}

/** Keys in files: the service manager reads them as root, so that no other user needs access. */
export function credentialsOf({ service, kb }: Config): Credential[] {
  const hosted = "apiUrl" in service ? service.pauthkeyFile : undefined;
  const others = [
    [PASSWORD_FILE, "apiUrl" in service ? undefined : service.databasePasswordFile],
    ["kb.embedding.apiKeyFile", kb.embedding.apiKeyFile],
    ["kb.reranker.apiKeyFile", kb.reranker?.apiKeyFile],
    ["kb.languageModel.apiKeyFile", kb.languageModel?.apiKeyFile],
  ] as const;
  return [
    ...(hosted === undefined ? [] : [{ id: HOSTED_KEY_CREDENTIAL, path: hosted }]),
    // A hosted service has its own.
    ...("apiUrl" in service ? [] : others).flatMap(([key, path]) =>
      path === undefined ? [] : [{ id: credentialOf(key), path }],
    ),
  ];
}

function modelFolders({ service, kb: { embedding } }: Config): string[] {
  const isLocal = !("apiUrl" in service) && embedding.baseUrl === undefined;
  return isLocal && embedding.model !== undefined ? [embedding.model] : [];
}

/** The options with which the next install writes the same unit. A folder's unit has no configuration. */
function originOf(request: UnitRequest, config: Config | undefined, data: string): Origin {
  const { runAs, group, stateDir } = request;
  return {
    ...(config !== undefined && { config: configFile(config) }),
    ...(config !== undefined && stateDir !== undefined && { stateDir: config.stateDir }),
    ...(runAs !== undefined && { runAs }),
    ...(group !== undefined && { group: [...group] }),
    data,
  };
}

/** The running program. */
function thisProgram(): Program {
  return { node: process.execPath, script: fileURLToPath(entryUrl("main")), packageFolder: packagePath() };
}

function template(name: string): string {
  return readFileSync(packagePath("systemd", name), "utf8");
}

function configHome(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_CONFIG_HOME"] ?? "";
  return named === "" ? join(homedir(), ".config") : resolve(named);
}

function stateHome(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_STATE_HOME"] ?? "";
  return named === "" ? join(homedir(), ".local", "state") : resolve(named);
}

/** First systemd version with growing restart delays; older ones warn about the unknown key at each load. */
const STEPS_SINCE = 254;
/**
 * Number of restarts over which the delay grows from `RestartSec=` to the longest. systemd counts restarts until a person
 * starts the unit (https://github.com/systemd/systemd/issues/43813), so restarts spread over a year reach the longest
 * delay too. It is short for that reason: the program also restarts when a folder was replaced outside.
 */
const RESTART_STEPS = 6;
const RESTART_MAX_DELAY_SECONDS = 15;

/** Adds growing restart delays to a unit where this systemd version supports them. Pure. */
export function withRestartSteps(text: string, systemd: number | undefined): string {
  if (systemd === undefined || systemd < STEPS_SINCE) return text;
  const stepped = withDirective(text, "Service", "RestartSteps", [String(RESTART_STEPS)]);
  return withDirective(stepped, "Service", "RestartMaxDelaySec", [String(RESTART_MAX_DELAY_SECONDS)]);
}
