import { statSync } from "node:fs";
import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import type { ServiceOptions } from "../../kb/options.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { credentialFile } from "../../system/credentials.ts";
import { readKeyFile } from "../state/state-folder.ts";

/** Permissions of others in a file's mode. */
const OTHERS = 0o007;

/**
 * What opens the embedding model of the configuration: the local one, or one behind an address. The key is read now, so that
 * a missing one is told at the start. Throws `key_invalid`.
 */
export function embedderOf(
  { baseUrl, model, apiKeyFile, dimensions }: Config["kb"]["embedding"],
  modelDir: string | undefined,
  log: Logger,
): NonNullable<ServiceOptions["openEmbedder"]> {
  if (baseUrl === undefined || model === undefined) {
    return async () => {
      const { openLocalEmbedder } = await import("../../kb/embed/local.ts");
      return openLocalEmbedder(modelDir === undefined ? {} : { modelDir });
    };
  }
  const apiKey = serviceKey(apiKeyFile, "kb.embedding.apiKeyFile", log);
  return async () => {
    const { openRemoteEmbedder } = await import("../../kb/embed/remote.ts");
    return openRemoteEmbedder({ baseUrl, model, apiKey, ...(dimensions !== undefined && { dimensions }) });
  };
}

/** What the configuration says of the reranking model. Throws `key_invalid`. */
export function rerankerOf(
  reranker: Config["kb"]["reranker"],
  log: Logger,
): Pick<ServiceOptions, "reranker"> {
  if (reranker === undefined) return {};
  const { url, model, apiKeyFile } = reranker;
  return { reranker: { url, model, apiKey: serviceKey(apiKeyFile, "kb.reranker.apiKeyFile", log) } };
}

/** What the configuration says of the language model. Throws `key_invalid`. */
export function languageModelOf(
  language: Config["kb"]["languageModel"],
  log: Logger,
): Pick<ServiceOptions, "languageModel"> {
  if (language === undefined) return {};
  const { baseUrl, model, apiKeyFile } = language;
  return {
    languageModel: { baseUrl, model, apiKey: serviceKey(apiKeyFile, "kb.languageModel.apiKeyFile", log) },
  };
}

/**
 * The key of another service, from its file; undefined where none is configured. A credential of the service manager goes
 * before the file that the configuration names: `kb.reranker.apiKey` for `kb.reranker.apiKeyFile`. A file that everybody on
 * the machine can read is used, for containers mount secrets so, but told. Throws `key_invalid`.
 */
export function serviceKey(
  named: string | undefined,
  configured: string,
  log: Logger,
  env: NodeJS.ProcessEnv = process.env,
): string | undefined {
  const file = credentialFile(env, credentialOf(configured)) ?? named;
  if (file === undefined) return undefined;
  const key = readKeyFile(file);
  if (key === undefined) {
    throw new KbsyncError(`there is no key file ${file}`, {
      code: "key_invalid",
      subject: file,
      hint: `Write the service's key into it, or change ${configured}.`,
    });
  }
  if ((statSync(file).mode & OTHERS) !== 0) {
    log.warn({ file }, `everybody on this machine can read the key of ${configured}: chmod 600 closes it`);
  }
  return key;
}

/** Name of the credential for a key file of the configuration. */
export function credentialOf(configured: string): string {
  return configured.replace(/File$/, "");
}
