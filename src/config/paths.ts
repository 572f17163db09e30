import { join, resolve } from "node:path";
import { homeFolder } from "../lib/home.ts";
import { isBucket } from "./schema/files.ts";
import type { KbConfig, ServiceConfig } from "./schema.ts";

/** Makes the paths of the service absolute. `folder` is that of the configuration file. */
export function absoluteService(service: ServiceConfig, folder: string): ServiceConfig {
  if (!("apiUrl" in service)) {
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

/** Makes the paths of `kb` absolute. `folder` is that of the configuration file. */
export function absoluteKb(kb: KbConfig, folder: string): KbConfig {
  return {
    ...kb,
    embedding: withAbsoluteKey(kb.embedding, folder),
    ...(kb.languageModel && { languageModel: withAbsoluteKey(kb.languageModel, folder) }),
    ...(kb.reranker && { reranker: withAbsoluteKey(kb.reranker, folder) }),
  };
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
