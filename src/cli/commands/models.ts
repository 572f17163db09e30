import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { withModel } from "../../config/edit.ts";
import type { Config } from "../../config/load.ts";
import { downloadedModelFolder } from "../../config/paths.ts";
import type { KnownModel } from "../../kb/embed/known-models.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, jsonOption } from "../output/options.ts";
import { openOperator, printJson, type Operator } from "../state/ask.ts";
import { editConfig } from "../state/config-file.ts";

interface ModelsOptions extends CommonOptions {
  readonly json?: boolean;
}

/** `kbsync models`: the embedding model in use and those that can replace it. */
export function addModels(program: Command, context: Context): void {
  program
    .command("models")
    .description(
      "show the embedding models; with a name, download that one and put it into the configuration",
    )
    .argument("[name]", "a known model, or a folder with one, such as ./my-model")
    .addOption(jsonOption())
    .action(async (name: string | undefined, options: ModelsOptions) => models(context, name, options));
}

async function models(context: Context, name: string | undefined, options: ModelsOptions): Promise<void> {
  const operator = openOperator(context, options);
  if ("apiUrl" in operator.config.service)
    throw usage("the configuration names a hosted service, which has its own model");
  const { KNOWN_MODELS } = await import("../../kb/embed/known-models.ts");
  if (name === undefined) await list(context, operator.config, KNOWN_MODELS, options.json === true);
  else await switchTo(context, operator, name, KNOWN_MODELS);
}

function usage(message: string): KbsyncError {
  return new KbsyncError(message, {
    code: "usage",
    hint: "`kbsync models` lists the models, `kbsync models NAME` switches to one.",
  });
}

/** Prints the model in use and the known ones. */
async function list(
  context: Context,
  { kb }: Config,
  known: readonly KnownModel[],
  asJson: boolean,
): Promise<void> {
  const { readConfiguredModel } = await import("../../kb/embed/model-files.ts");
  const { baseUrl, model } = kb.embedding;
  const inUse =
    baseUrl === undefined ? await readConfiguredModel(model) : { name: model ?? "", url: baseUrl };
  if (asJson) {
    printJson(context, { inUse, known });
    return;
  }
  const words =
    "problem" in inUse
      ? `none; ${inUse.location}: ${inUse.problem}`
      : `${inUse.name} ${"url" in inUse ? `at ${inUse.url}` : `in ${inUse.folder}`}`;
  const lines = known.map(
    ({ name, languages, download }) =>
      `  ${name}: ${languages}${download === undefined ? "" : `, ${download.sizeMb} MB to download`}\n`,
  );
  context.stdout.write(`in use: ${words}\nknown models:\n${lines.join("")}`);
}

/** Gets a model and writes it to the configuration. */
async function switchTo(
  context: Context,
  operator: Operator,
  name: string,
  known: readonly KnownModel[],
): Promise<void> {
  const { file, kb, stateDir } = operator.config;
  if (file === undefined) {
    throw new KbsyncError("there is no configuration to put the model into", {
      code: "config_not_found",
      hint: "`kbsync init FOLDER` writes one; --config names another.",
    });
  }
  if (kb.embedding.baseUrl !== undefined)
    throw usage(`kb.embedding in ${file} names a model at ${kb.embedding.baseUrl}: remove it first`);
  const model = known.find((each) => each.name === name);
  const folder = model === undefined ? resolve(context.cwd, name) : downloadedModelFolder(stateDir, name);
  if (model === undefined) {
    const { readModelFolder } = await import("../../kb/embed/model-files.ts");
    const found = await readModelFolder(folder, false);
    if ("problem" in found) throw usage(`there is no model ${name}: ${found.problem}`);
  } else if (model.download !== undefined && !existsSync(folder)) {
    const { downloadModel } = await import("../../kb/embed/download-model.ts");
    context.stdout.write(`downloading ${model.download.sizeMb} MB from the model hub\n`);
    await downloadModel(model.download, folder, context);
  }
  editConfig(file, context, (text) => withModel(text, model === undefined ? folder : name));
  const isLive = (await operator.ask("status", {})) !== undefined;
  context.stdout.write(
    `${file} names ${name} now. ${isLive ? "Restart kbsync to use it" : "The next start of kbsync uses it"}. ` +
      "All documents in moderate and high_accuracy get new vectors in the background; searches use the earlier model until all have one.\n",
  );
}
