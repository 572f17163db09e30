import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { withModelDir } from "../../config/edit.ts";
import type { Config } from "../../config/load.ts";
import type { KnownModel } from "../../kb/embed/known-models.ts";
import type { MissingModel, ModelFiles } from "../../kb/embed/model-files.ts";
import type { ModelSource, Reach } from "../../kb/embed/model-source.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { openOperator, printJson, type Operator } from "../state/ask.ts";
import { editConfig } from "../state/config-file.ts";

interface ModelsOptions extends CommonOptions {
  readonly from?: string;
  readonly json?: boolean;
}

/** `kbsync models`: the embedding model in use and those that can replace it. */
export function addModels(program: Command, context: Context): void {
  program
    .command("models")
    .description(
      "show the embedding model in use and the known ones; with a name, switch to that one: download it, check it, and put it into the configuration",
    )
    .argument("[name]", "the model to switch to")
    .option(
      "--from <origin>",
      "folder or address of a folder with the model's files (default: the public model hub, or $HF_ENDPOINT)",
    )
    .addOption(jsonOption())
    .action(async (name: string | undefined, options: ModelsOptions) => models(context, name, options));
}

async function models(context: Context, name: string | undefined, options: ModelsOptions): Promise<void> {
  const operator = openOperator(context, options);
  const { service, stateDir } = operator.config;
  if ("apiUrl" in service) throw usage("the configuration names a hosted service, which has its own model");
  const { KNOWN_MODELS } = await import("../../kb/embed/known-models.ts");
  if (name === undefined) {
    if (options.from !== undefined) throw usage("expected the name of a model with --from");
    await list(context, operator.config, KNOWN_MODELS, options.json === true);
    return;
  }
  const model = KNOWN_MODELS.find((known) => known.name === name);
  if (model === undefined)
    throw usage(`there is no model ${name}; known are ${KNOWN_MODELS.map((known) => known.name).join(", ")}`);
  await switchTo(context, operator, model, { ...options, folder: folderOf(stateDir, model) });
}

function usage(message: string): KbsyncError {
  return new KbsyncError(message, {
    code: "usage",
    hint: "`kbsync models` lists the models, `kbsync models NAME` switches to one.",
  });
}

function folderOf(stateDir: string, { name }: KnownModel): string {
  return join(stateDir, "models", name);
}

/** Prints the model in use and the known ones. */
async function list(
  context: Context,
  { service, kb, stateDir }: Config,
  known: readonly KnownModel[],
  asJson: boolean,
): Promise<void> {
  const { readConfiguredModel } = await import("../../kb/embed/model-files.ts");
  const { baseUrl, model: remote } = kb.embedding;
  const modelDir = "apiUrl" in service ? undefined : service.modelDir;
  const inUse =
    baseUrl === undefined ? await readConfiguredModel(modelDir) : { name: remote ?? "", url: baseUrl };
  const rows = known.map((model) => ({
    name: model.name,
    languages: model.languages,
    license: model.license,
    isHere: model.download === undefined || existsSync(folderOf(stateDir, model)),
    downloadMb: model.download?.sizeMb ?? 0,
  }));
  if (asJson) {
    printJson(context, { inUse, known: rows });
    return;
  }
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, languages, license, isHere, downloadMb }) => {
    const where = isHere ? "on this machine" : `${downloadMb} MB to download`;
    return `  ${name.padEnd(width)}  ${languages}, ${license}, ${where}\n`;
  });
  context.stdout.write(
    `in use: ${inUseWords(inUse)}\nknown models, each with 384 dimensions:\n${lines.join("")}` +
      "`kbsync models NAME` switches to one.\n",
  );
}

function inUseWords(
  inUse: ModelFiles | MissingModel | { readonly name: string; readonly url: string },
): string {
  if ("url" in inUse) return `${inUse.name} at ${inUse.url} (kb.embedding)`;
  if ("problem" in inUse) return `none; ${inUse.location}: ${inUse.problem}`;
  const { name, dtype, dimensions, tokensMax, folder } = inUse;
  return `${name} (${dtype}, ${dimensions} dimensions, texts of up to ${tokensMax} tokens)\n  ${folder}`;
}

interface Switch {
  readonly from?: string;
  /** The folder that the model will be in. */
  readonly folder: string;
}

/** Downloads the model unless it is on this machine, and writes it to the configuration. */
async function switchTo(
  context: Context,
  operator: Operator,
  { name, download }: KnownModel,
  { from, folder }: Switch,
): Promise<void> {
  const { file, kb } = operator.config;
  const { stdout } = context;
  if (file === undefined) {
    throw new KbsyncError("there is no configuration to put the model into", {
      code: "config_not_found",
      hint: "`kbsync init FOLDER` writes one; --config names another.",
    });
  }
  if (kb.embedding.baseUrl !== undefined)
    throw usage(`kb.embedding in ${file} names a model at ${kb.embedding.baseUrl}: remove it first`);
  if (download === undefined) {
    if (from !== undefined) throw usage(`kbsync's package has ${name}, so it needs no --from`);
  } else if (from === undefined && existsSync(folder)) {
    stdout.write(`${name} is already in ${folder}\n`);
  } else {
    await getModel(context, name, download, { from, folder });
  }
  editConfig(file, context, (text) => withModelDir(text, download === undefined ? undefined : folder));
  const isLive = (await operator.ask("status", {})) !== undefined;
  stdout.write(
    `${file} names ${name} now. ${isLive ? "Restart kbsync to use it" : "The next start of kbsync uses it"}. ` +
      "Documents get new vectors in the background, and searches use the earlier model until all have one.\n",
  );
}

type Download = NonNullable<KnownModel["download"]>;

async function getModel(
  { stdout, signal, env, cwd }: Context,
  name: string,
  download: Download,
  { from, folder }: { readonly from: string | undefined; readonly folder: string },
): Promise<void> {
  const { installModel } = await import("../../kb/embed/install-model.ts");
  const dispatcher = openAgent({ headersTimeout: 30_000, bodyTimeout: 60_000 }, env);
  try {
    const source = await openSource(download, from, { dispatcher, signal }, { env, cwd });
    stdout.write(`getting ${name} from ${source.origin}\n`);
    await installModel(download, source, folder, 384, ({ doneBytes, totalBytes }) => {
      const total = totalBytes === undefined ? "" : ` of ${megabytes(totalBytes)}`;
      if (stdout.isTTY) stdout.bar(`${megabytes(doneBytes)}${total} MB`);
    });
    if (stdout.isTTY) stdout.bar("");
    stdout.write(`checked the files and tried the model: ${folder}\n`);
  } finally {
    if (stdout.isTTY) stdout.bar("");
    await dispatcher.destroy();
  }
}

/** Opens the origin of the files. Throws `model_download` with advice if it does not answer. */
async function openSource(
  { hubId }: Download,
  from: string | undefined,
  reach: Reach,
  { env, cwd }: Pick<Context, "env" | "cwd">,
): Promise<ModelSource> {
  const { HUB_URL, openFolder, openHub, openWebFolder, SUMS_FILE } =
    await import("../../kb/embed/model-source.ts");
  const { causeOf, MODEL_PATHS } = await import("../../kb/embed/install-model.ts");
  if (from !== undefined && !/^https?:\/\//.test(from)) return openFolder(resolve(cwd, from), MODEL_PATHS);
  const hub = (env["HF_ENDPOINT"] || HUB_URL).replace(/\/+$/, "");
  try {
    return await (from === undefined ? openHub(hub, hubId, reach) : openWebFolder(from, reach));
  } catch (cause) {
    reach.signal.throwIfAborted();
    const origin = from ?? `${hub}/${hubId}`;
    throw new KbsyncError(`cannot get the model from ${origin}: ${causeOf(cause)}`, {
      code: "model_download",
      subject: origin,
      retryable: true,
      hint:
        from === undefined
          ? `Nothing was changed. Without access to the hub, copy the repository ${hubId} to a folder on this machine and name it: \`--from FOLDER\`. HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy.`
          : `Nothing was changed. The address needs the model's files and a list of their checksums, ${SUMS_FILE}, as sha256sum writes it.`,
      cause,
    });
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0);
}
