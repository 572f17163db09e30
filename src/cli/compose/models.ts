import { statSync } from "node:fs";
import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import type { ServiceOptions } from "../../kb/options.ts";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { credentialFile } from "../../system/credentials.ts";
import { readKeyFile } from "../state/state-folder.ts";

/** Permissions of others in a file's mode. */
const OTHERS = 0o007;

/**
 * Returns a function that opens the configured embedding model, local or remote. Throws `key_invalid`.
 */
export function embedderOf(
  { baseUrl, model, apiKeyFile }: Config["kb"]["embedding"],
  log: Logger,
): NonNullable<ServiceOptions["openEmbedder"]> {
  if (baseUrl === undefined || model === undefined) {
    return async () => {
      const { openLocalEmbedder } = await import("../../kb/embed/local.ts");
      return openLocalEmbedder(model === undefined ? {} : { modelDir: model });
    };
  }
  const apiKey = serviceKey(apiKeyFile, "kb.embedding.apiKeyFile", log);
  return async (onTokens) => {
    const { openRemoteEmbedder } = await import("../../kb/embed/remote.ts");
    return openRemoteEmbedder({ baseUrl, model, apiKey, onTokens });
  };
}

/** Options of the reranking model. Throws `key_invalid`. */
export function rerankerOf(
  reranker: Config["kb"]["reranker"],
  log: Logger,
): Pick<ServiceOptions, "reranker"> {
  if (reranker === undefined) return {};
  const { url, model, apiKeyFile } = reranker;
  return { reranker: { url, model, apiKey: serviceKey(apiKeyFile, "kb.reranker.apiKeyFile", log) } };
}

/** Options of the language model. Throws `key_invalid`. */
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
 * Returns a function that reads the key of a remote service; undefined if none is configured. Prefers a credential of the
 * service manager to the configured file: `kb.reranker.apiKey` to `kb.reranker.apiKeyFile`. Reads the key at once, so that a
 * missing one is reported at startup, and again for each request: a new one needs no restart, and while the file has none,
 * the former one is used. Warns about a world-readable file, but uses it, because containers mount secrets that way. Throws
 * `key_invalid`.
 */
export function serviceKey(
  named: string | undefined,
  configured: string,
  log: Logger,
  env: NodeJS.ProcessEnv = process.env,
): (() => string) | undefined {
  const file = credentialFile(env, credentialOf(configured)) ?? named;
  if (file === undefined) return undefined;
  const read = (): string => {
    const key = readKeyFile(file);
    if (key !== undefined) return key;
    throw new KbsyncError(`there is no key file ${file}`, {
      code: "key_invalid",
      subject: file,
      hint: `Write the service's key into it, or change ${configured}.`,
    });
  };
  let key = read();
  let problem: string | undefined;
  if ((statSync(file).mode & OTHERS) !== 0) {
    log.warn({ file }, `other users of this machine can read the key of ${configured}: run chmod 600`);
  }
  return () => {
    try {
      key = read();
      problem = undefined;
    } catch (error) {
      const words = messageOf(error);
      if (words !== problem) log.warn({ file }, `not applied, the former key stays in use: ${words}`);
      problem = words;
    }
    return key;
  };
}

/** Returns the credential's name for a key file of the configuration. */
export function credentialOf(configured: string): string {
  return configured.replace(/File$/, "");
}
