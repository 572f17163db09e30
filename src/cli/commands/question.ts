import { existsSync, openAsBlob } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Command } from "commander";
import { FormData } from "undici";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operate/resource-lookup.ts";
import { AGENT_ID_CHARS_MAX, DEFAULT_AGENT_ID } from "../../wire/agent.ts";
import {
  THREAD_ID_CHARS_MAX,
  USER_CHARS_MAX,
  type Annotation,
  type ChatResponse,
  type Citation,
} from "../../wire/chat.ts";
import { IMAGES_MAX } from "../../wire/constants.ts";
import { ROUTES } from "../../wire/routes.ts";
import { UploadAnswer } from "../../wire/upload.ts";
import { documentProse } from "../terminal/prose.ts";
import { readChatAnswer } from "./chat-events.ts";
import { reachService } from "../compose/reached-service.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { askService, callService } from "../compose/service-call.ts";
import { citedPath } from "../output/cited-path.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import {
  type CommonOptions,
  freshOption,
  type FreshOptions,
  waitSecondsOf,
  jsonOption,
} from "../output/options.ts";
import { nothingSynced } from "../state/ask.ts";
import { awaitFresh } from "../state/fresh.ts";
import { loadWithFolders } from "../state/sources.ts";
import { makeStateFolder, stateFolder } from "../state/state-folder.ts";
import { visibleLine } from "../output/visible.ts";

interface AskOptions extends CommonOptions, FreshOptions {
  readonly image?: readonly string[];
  readonly agent: string;
  readonly thread?: string;
  readonly json?: boolean;
}

/** Longest wait for the next piece of an answer: reading a large scan takes some minutes. */
const SILENCE_MS = 10 * 60_000;
/** Characters of a cited passage shown in the list of sources. */
const QUOTE_CHARS_MAX = 160;

/** `kbsync ask QUESTION`: an agent's answer from the knowledge base and from images. */
export function addAsk(program: Command, context: Context): void {
  const collect = (path: string, before: readonly string[] = []): readonly string[] => [...before, path];
  program
    .command("ask")
    .description("ask an agent, which answers from the knowledge base and from images you add")
    .argument("<question...>", "in your own words; needs no quotes, and may be empty with an image")
    .option("-i, --image <file>", "image to send with the question; may be repeated", collect)
    .option("-a, --agent <agent>", "the agent to ask", DEFAULT_AGENT_ID)
    .option("-t, --thread <id>", "continue the conversation with this name, or start one")
    .addOption(freshOption())
    .addOption(jsonOption())
    .action(async (words: readonly string[], options: AskOptions) =>
      askOnce(context, words.join(" "), options),
    );
}

async function askOnce(context: Context, question: string, options: AskOptions): Promise<void> {
  refuseUsage(question, options);
  const config = loadWithFolders(context, options);
  const { serviceDir } = stateFolder(config.stateDir);
  if (!("apiUrl" in config.service) && config.sources.length === 0 && !existsSync(serviceDir))
    throw nothingSynced(config.stateDir);
  const state = makeStateFolder(config.stateDir);
  const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
  // Port 0: another program may use the configured one, and this service runs for one question.
  const service = await reachService(config, state, context.env, log);
  try {
    const urls: string[] = [];
    for (const image of options.image ?? []) urls.push(await upload(context, service, image, options));
    const body = {
      user: question,
      agent_id: options.agent,
      ...(options.thread === undefined ? {} : { thread_id: options.thread }),
      user_urls: urls.map((url) => ({ type: "image", url })),
      response_type: "text",
      stream: true,
    };
    const { signal } = context;
    const late = await awaitFresh(state.path, { path: undefined, seconds: waitSecondsOf(options), signal });
    const answer = await callService(service, {
      method: "POST",
      path: ROUTES.chat,
      what: "a question",
      body,
      signal,
      silenceMs: SILENCE_MS,
    });
    const isShown = options.json !== true;
    const response = await readChatAnswer(answer, (piece) => {
      if (isShown) context.stdout.write(piece);
    }).catch((error: unknown) => {
      // Interrupted by the user, not by the service.
      signal.throwIfAborted();
      throw error;
    });
    const lookup = openResourceLookup(state.path);
    try {
      context.stdout.write(
        options.json === true
          ? `${JSON.stringify(response, undefined, 2)}\n`
          : documentProse(context.stdout, endText(response, lookup)),
      );
    } finally {
      lookup?.close();
    }
    if (late !== undefined) context.stderr.write(`${late}\n`);
    if (response.data.finish_reason === "error") {
      throw new KbsyncError(`the answer broke off: ${response.data.firstAttemptError}`, {
        code: "model_failed",
      });
    }
  } finally {
    await service.close();
  }
}

function refuseUsage(question: string, { image = [], agent, thread }: AskOptions): void {
  const refuse = (words: string): never => {
    throw new KbsyncError(words, { code: "usage" });
  };
  if (question.trim() === "" && image.length === 0) refuse("the question is empty, and there is no image");
  if (question.length > USER_CHARS_MAX) {
    refuse(`the question has ${question.length} characters, expected at most ${USER_CHARS_MAX}`);
  }
  if (image.length > IMAGES_MAX)
    refuse(`${image.length} images are too many, expected at most ${IMAGES_MAX}`);
  if (agent === "" || agent.length > AGENT_ID_CHARS_MAX) refuse("--agent: expected the id of an agent");
  if (thread !== undefined && (thread === "" || thread.length > THREAD_ID_CHARS_MAX)) {
    refuse(`--thread: expected 1 to ${THREAD_ID_CHARS_MAX} characters`);
  }
}

/** Uploads an image for the thread. Returns its `file_url`. */
async function upload(
  context: Context,
  service: ReachedService,
  image: string,
  { agent, thread }: AskOptions,
): Promise<string> {
  const path = resolve(context.cwd, image);
  const form = new FormData();
  if (thread !== undefined) {
    form.append("agent_id", agent);
    form.append("thread_id", thread);
  }
  try {
    // A blob of a missing file fails without a reason.
    if (!(await stat(path)).isFile()) throw new Error("it is not a file");
    form.append("file", await openAsBlob(path), basename(path));
  } catch (error) {
    const why = codeOf(error) === "ENOENT" ? "there is no such file" : messageOf(error);
    throw new KbsyncError(`cannot read the image ${path}: ${why}`, {
      code: "usage",
      subject: path,
      cause: error,
    });
  }
  const { signal } = context;
  const call = { method: "POST", path: ROUTES.chatUpload, what: "an image", body: form, signal } as const;
  return (await askService(service, call, UploadAnswer)).file_url;
}

/** The lines below an answer: its sources, and warnings. */
export function endText({ data }: ChatResponse, lookup: Pick<ResourceLookup, "fileOf"> | undefined): string {
  const sources = data.annotations.flatMap((each) => (each.type === "citation" ? [each] : []));
  const notes = data.annotations.map(noteOf).filter((note) => note !== "");
  if (data.fallback) notes.push(`answered by ${data.model}, after: ${data.firstAttemptError}`);
  if (data.finish_reason === "truncated") notes.push("the model's answer was cut off at its limit");
  if (data.finish_reason === "content_filter") notes.push("the model's provider withheld the answer");
  const cited = sources.map((source) => `  ${sourceText(source, lookup)}\n`).join("");
  const said = notes.map((note) => `  ${note}\n`).join("");
  return `\n${cited === "" ? "" : `\nSources\n${cited}`}${said === "" ? "" : `\nNotes\n${said}`}`;
}

function sourceText(
  { number, resource_id, title, score, span, lines, locations }: Citation,
  lookup: Pick<ResourceLookup, "fileOf"> | undefined,
): string {
  const path = lookup?.fileOf(resource_id)?.path;
  const name = visibleLine(path === undefined ? title : citedPath(path, { lines, locations }));
  const line = span.text.replaceAll(/\s+/g, " ");
  const quote = line.length <= QUOTE_CHARS_MAX ? line : `${line.slice(0, QUOTE_CHARS_MAX)}…`;
  return `[${number}] ${score.toFixed(2)}  ${name}  “${quote}”`;
}

function noteOf(annotation: Annotation): string {
  switch (annotation.type) {
    case "citation":
      return "";
    case "missing_variable":
      return `the variable ${annotation.name} has no value`;
    case "image_left_out":
      return `the image ${annotation.url} was left out: ${annotation.reason}`;
    case "messages_left_out":
      return `${annotation.count} earlier messages did not fit into the model's window`;
    case "passages_left_out":
      return `${annotation.count} passages did not fit into the model's window`;
  }
}
