import { join, resolve } from "node:path";
import { homeFolder } from "../lib/home.ts";
import { PACKAGED_MODEL } from "../lib/package.ts";
import { isBucket } from "./schema/files.ts";
import type { KbConfig, ServiceConfig } from "./schema.ts";

/** Makes the paths of the service absolute. `folder` is that of the configuration file. */
export function absoluteService(service: ServiceConfig, folder: string): ServiceConfig {
  if (!("apiUrl" in service)) {
    const { databasePasswordFile: passwordFile, files } = service;
    return {
      ...service,
      ...(passwordFile !== undefined && { databasePasswordFile: absolutePathOf(folder, passwordFile) }),
      ...(files !== undefined && !isBucket(files) && { files: absolutePathOf(folder, files) }),
    };
  }
  if (service.pauthkeyFile === undefined) return service;
  return { ...service, pauthkeyFile: absolutePathOf(folder, service.pauthkeyFile) };
}

/** Makes the paths of `kb` absolute, and a local model the folder that has it. `folder` is that of the configuration file. */
export function absoluteKb(kb: KbConfig, folder: string, stateDir: string): KbConfig {
  const { baseUrl, model } = kb.embedding;
  const embedding =
    baseUrl === undefined ? { ...kb.embedding, model: modelFolder(model, folder, stateDir) } : kb.embedding;
  return {
    ...kb,
    embedding: withAbsoluteKey(embedding, folder),
    ...(kb.languageModel && { languageModel: withAbsoluteKey(kb.languageModel, folder) }),
    ...(kb.reranker && { reranker: withAbsoluteKey(kb.reranker, folder) }),
  };
}

/** Returns the folder of a local model; undefined: the packaged one. What has a slash is a folder, anything else a name. */
function modelFolder(model: string | undefined, folder: string, stateDir: string): string | undefined {
  if (model === undefined || model === PACKAGED_MODEL) return undefined;
  return model.includes("/") ? absolutePathOf(folder, model) : downloadedModelFolder(stateDir, model);
}

/** Returns the folder of a downloaded model. */
export function downloadedModelFolder(stateDir: string, name: string): string {
  return join(stateDir, "models", name);
}

function withAbsoluteKey<T extends { apiKeyFile?: string | undefined }>(service: T, folder: string): T {
  const { apiKeyFile } = service;
  return apiKeyFile === undefined ? service : { ...service, apiKeyFile: absolutePathOf(folder, apiKeyFile) };
}

/** Makes a path of the configuration absolute. `~/` is the home folder. */
export function absolutePathOf(folder: string, path: string): string {
  if (path === "~" || path.startsWith("~/")) return join(homeFolder(`Write ${path} in full.`), path.slice(1));
  return resolve(folder, path);
}
