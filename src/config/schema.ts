import picomatch from "picomatch";
import { z } from "zod";
import { messageOf } from "../lib/failure.ts";
import { isExposed, isLoopback } from "../lib/loopback.ts";
import { isAllowEntry } from "../lib/public-address.ts";
import { AgentConfig } from "../wire/agent.ts";
import {
  CHUNK_CHARS_DEFAULT,
  CHUNK_CHARS_MAX,
  CHUNK_CHARS_MIN,
  OVERLAP_CHARS_DEFAULT,
  Strategy,
  Tier,
} from "../wire/primitives.ts";
import { DESCRIPTION_CHARS_MAX, OWNER_CHARS_MAX, TITLE_CHARS_MAX } from "../wire/constants.ts";
import {
  FILE_METADATA_KEYS,
  keyProblem,
  METADATA_STRING_CHARS_MAX,
  METADATA_VALUES_MAX,
} from "../wire/metadata.ts";
import { UPLOAD_BYTES_MAX } from "../wire/constants.ts";
import { filesProblem, isBucket } from "./files.ts";
import { LimitsConfig } from "./limits.ts";

/** Default address of the embedded service, reachable from this machine only. */
const HOST_DEFAULT = "127.0.0.1";
/** Default port of the embedded service. */
export const PORT_DEFAULT = 7411;

const HttpUrl = z
  .url({ protocol: /^https?$/, error: "expected an http or https address" })
  .transform((text) => text.replace(/\/+$/, ""));

const settings = z
  .strictObject({
    strategy: Strategy.default("recursive").describe("How a document is split into chunks."),
    chunkSize: z
      .int()
      .min(CHUNK_CHARS_MIN)
      .max(CHUNK_CHARS_MAX)
      .default(CHUNK_CHARS_DEFAULT)
      .describe("Longest chunk, in characters."),
    chunkOverlap: z
      .int()
      .min(0)
      .optional()
      .describe(
        "Characters that consecutive chunks share; below chunkSize. Default: 100, or a tenth of a small chunkSize.",
      ),
  })
  .transform(({ chunkOverlap, ...rest }) => ({
    ...rest,
    chunkOverlap: chunkOverlap ?? Math.min(OVERLAP_CHARS_DEFAULT, Math.floor(rest.chunkSize / 10)),
  }))
  .refine(({ chunkSize, chunkOverlap }) => chunkOverlap < chunkSize, {
    error: "expected a number below chunkSize",
    path: ["chunkOverlap"],
  });

/** A glob over paths below a source. */
export const GlobText = z
  .string()
  .min(1)
  .max(1000)
  .superRefine((text, context) => {
    const message = globProblem(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

/** Explains why a glob can match nothing, or not what it seems to; undefined if it can. */
function globProblem(text: string): string | undefined {
  if (text.startsWith("!"))
    return "expected a glob without `!`, which negates nothing here: use include and exclude, or a .kbsyncignore (a name that begins with it is `[!]…`)";
  if (text.split("/").includes("..")) return "expected a path below the source, without `..`";
  try {
    picomatch.makeRe(text, { strictBrackets: true });
    return undefined;
  } catch (error) {
    return `expected a glob: ${messageOf(error)}`;
  }
}

const rule = z.strictObject({
  match: GlobText.describe("Glob over the path below the source, for example `manuals/**/*.pdf`."),
  settings: settings.optional().describe("Chunking of the files that match."),
  title: z
    .string()
    .min(1)
    .max(TITLE_CHARS_MAX)
    .optional()
    .describe("Title of the files that match; {path}, {name} and {title} are filled in."),
  description: z
    .string()
    .max(DESCRIPTION_CHARS_MAX)
    .optional()
    .describe("Description of the files that match; {path}, {name} and {title} are filled in."),
});

const fixedValue = z.union([
  z.string().max(METADATA_STRING_CHARS_MAX),
  z.number(),
  z.boolean(),
  z.array(z.string().min(1).max(METADATA_STRING_CHARS_MAX)).max(METADATA_VALUES_MAX / 4),
]);

/** Returns why a rule cannot set this metadata, or undefined. */
function fixedProblem(name: string, value: z.infer<typeof fixedValue>): string | undefined {
  if (name !== "tags" && FILE_METADATA_KEYS.has(name))
    return `expected another name: kbsync sends ${name} itself`;
  if (name !== "tags" && Array.isArray(value)) return "expected a string, a number, true or false";
  return keyProblem(name, 1);
}

const metadataRule = z.strictObject({
  glob: GlobText.describe("Glob over the path below the source, for example `contracts/**`."),
  set: z
    .record(z.string(), fixedValue)
    .superRefine((set, context) => {
      for (const [name, value] of Object.entries(set)) {
        const problem = fixedProblem(name, value);
        if (problem !== undefined) context.addIssue({ code: "custom", path: [name], message: problem });
      }
    })
    .describe(
      "Metadata of the files that match: strings, numbers, true and false by name. `tags` is a list, which joins the file's own.",
    ),
});

const SourceEntry = z.strictObject({
  path: z.string().min(1).describe("The folder to watch; relative to the configuration file."),
  ownerId: z
    .string()
    .min(1)
    .max(OWNER_CHARS_MAX)
    .optional()
    .describe(
      "Owner of this source's resources, which collection searches name. Default: the folder's name and a short hash of its path.",
    ),
  collection: Tier.default("fastest").describe(
    "Retrieval tier. `fastest` searches words, `moderate` adds the local language model.",
  ),
  collectionId: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("The collection's id at the service, if known. Saves a request after the ledger was lost."),
  settings: settings.prefault({}).describe("Chunking of this source's files."),
  include: z
    .array(GlobText)
    .max(1000)
    .default([])
    .describe("Only files that match one of these globs. Default: every file of a known kind."),
  exclude: z
    .array(GlobText)
    .max(1000)
    .default([])
    .describe("Files that match one of these globs are left out."),
  allowSecrets: z
    .array(GlobText)
    .max(1000)
    .default([])
    .describe(
      "Files that match one of these globs are sent although a secret may be in them; see sync.blockSecrets.",
    ),
  rules: z
    .array(rule)
    .max(1000)
    .default([])
    .describe("Other settings, title or description by glob; a later rule overrides an earlier one."),
  metadata: z
    .array(metadataRule)
    .max(1000)
    .default([])
    .describe(
      "Metadata for filters by glob, for services that take it; a later rule overrides an earlier one.",
    ),
  descriptions: z
    .record(z.string().max(4096), z.string().min(1).max(METADATA_STRING_CHARS_MAX))
    .default({})
    .describe(
      "What the files of a folder are about, by its path below the source; `` is the source itself. Applies below it too, and is returned with hits. A file `.kbsync.md` in the folder replaces it.",
    ),
  maxFileBytes: z
    .int()
    .min(1)
    .default(UPLOAD_BYTES_MAX)
    .describe("Larger files are not read but reported. Default: 32 MB, the service's limit."),
  followSymlinks: z
    .boolean()
    .default(false)
    .describe(
      "Follow symbolic links whose target lies inside this folder; files keep the link's path. Default: links are left out.",
    ),
});

const EmbeddedService = z.strictObject({
  embedded: z.literal(true).describe("Run the service in this process."),
  host: z
    .string()
    .min(1)
    .max(255)
    .default(HOST_DEFAULT)
    .describe(
      "Address to listen on. One that is not loopback opens the service to other machines, `0.0.0.0` to all that reach this one. Then publicUrl and kb.resources.requireKey are required, and keys and documents travel unencrypted unless a proxy adds TLS.",
    ),
  port: z.int().min(0).max(65535).default(PORT_DEFAULT).describe("0 takes any free port."),
  publicUrl: HttpUrl.optional().describe(
    "Address by which clients reach the service, for example that of a proxy; addresses of uploaded files begin with it. One that is not loopback means that other machines reach the service: kb.resources.requireKey is required. Default: the address it listens on.",
  ),
  modelDir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder of the local embedding model. Default: the packaged model."),
  // `load.ts` checks the address: a message of the schema would quote it, and it may contain a password.
  database: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Address of a PostgreSQL database for the records and the index, without a password: `postgres://kbsync@db.example/kbsync`. Several processes may use one database. Default: an SQLite file in stateDir. The environment variable KBSYNC_DATABASE is used instead when set.",
    ),
  databasePasswordFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File that holds the password of the database; relative to the configuration file. Default: no password, or the one of PGPASSWORD or ~/.pgpass.",
    ),
  files: z
    .string()
    .min(1)
    .max(4096)
    .superRefine((text, context) => {
      const message = filesProblem(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .optional()
    .describe(
      "Where uploaded files are: a folder, relative to the configuration file, or an S3-compatible bucket, `s3://bucket/prefix`. Several processes may use one place. Default: a folder in stateDir.",
    ),
  s3: z
    .strictObject({
      endpoint: HttpUrl.refine(
        (text) => URL.parse(text)?.password === "",
        "expected an address without a password",
      )
        .optional()
        .describe(
          "Address of an S3-compatible service, such as `http://minio.example:9000`. Default: $AWS_ENDPOINT_URL_S3, else the one in the AWS configuration files, else Amazon S3.",
        ),
      region: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe(
          "Region of the bucket. Default: $AWS_REGION, else the one in the AWS configuration files; `us-east-1` with an endpoint.",
        ),
      pathStyle: z
        .boolean()
        .optional()
        .describe(
          "Whether requests name the bucket in the path instead of the host. Default: true with an endpoint.",
        ),
    })
    .optional()
    .describe("How the bucket of service.files is reached. Credentials come from where AWS tools find them."),
});

const Price = z.number().min(0).max(1_000_000);

const HostedService = z.strictObject({
  apiUrl: HttpUrl.describe("Main host: uploads and search."),
  dbUrl: HttpUrl.describe("Host that stores resources."),
  resourcesUrl: HttpUrl.describe("Host that serves uploaded files."),
  pauthkeyFile: z
    .string()
    .min(1)
    .optional()
    .describe("File that holds the key. The environment variable KBSYNC_PAUTHKEY is used instead when set."),
  price: Price.optional().describe(
    "Price of a million tokens that the service embeds, for the estimate of `kbsync sync -n`.",
  ),
});

const SyncSection = z.strictObject({
  settleMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(150)
    .describe(
      "Milliseconds without a change before a file is read. Longer than the gap between an editor's writes.",
    ),
  concurrency: z
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe(
      "Most files in flight to the service; lowered automatically when the service asks. Default: 128 for the embedded service, whose writes share flushes to disk, 16 for a hosted one.",
    ),
  requestTimeoutMs: z
    .int()
    .min(1000)
    .max(3_600_000)
    .default(120_000)
    .describe("Longest wait for one answer, in milliseconds. A large PDF takes a while to process."),
  limits: LimitsConfig.optional().describe(
    "Limits on what is sent to the service, by day and time, over all sources. Default: none.",
  ),
  rescanMinutes: z
    .int()
    .min(1)
    .max(10_080)
    .default(60)
    .describe(
      "Interval of comparisons of the whole folder with the ledger, which find changes without an event.",
    ),
  auditHours: z
    .number()
    .min(0)
    .max(8760)
    .default(24)
    .describe(
      "Interval in which a running daemon compares the ledger with the service's list and repairs what others changed; 0: never. A service without pagination sends all texts for it.",
    ),
  holdDeletesOver: z
    .int()
    .min(0)
    .default(50)
    .describe(
      "Deletes within ten minutes that exceed both this and holdDeletesPercent are held until a person approves. In a folder of fewer than twice as many files the limit is half of its files, but at least 10.",
    ),
  holdDeletesPercent: z
    .number()
    .min(0)
    .max(100)
    .default(20)
    .describe(
      "Share of the folder's files that deletes must exceed to be held; 100: only deletes of an emptied folder are.",
    ),
  blockSecrets: z
    .boolean()
    .optional()
    .describe(
      "Send no file in which a rule finds a private key, a token or a password in an address. Default: true if text leaves this machine: to a hosted service, or from the embedded one to a model or a database elsewhere or to other machines.",
    ),
  trashDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe(
      "Days for which the state folder retains the texts of deleted files for `kbsync undelete`; 0: never. Costs one more request per delete.",
    ),
});

const AllowEntry = z
  .string()
  .min(1)
  .max(300)
  .refine(isAllowEntry, { error: "expected a host name, *.name, an address or a range such as 10.0.0.0/8" });

const modelName = z.string().min(1).max(200).describe("Name of the model at that service.");
const apiKeyFile = z
  .string()
  .min(1)
  .optional()
  .describe(
    "File that holds the service's key, sent as a bearer token; relative to the configuration file. Default: no key is sent.",
  );

const EmbeddingModel = z
  .strictObject({
    baseUrl: HttpUrl.optional().describe(
      "Address of an OpenAI-compatible service up to the version, for example `https://api.openai.com/v1`. The text of every document in `moderate` and `high_accuracy` is sent there. Default: the local model, and nothing leaves the machine.",
    ),
    model: modelName.optional(),
    apiKeyFile,
    dimensions: z
      .int()
      .min(1)
      .max(8192)
      .optional()
      .describe(
        "Vector length to request from a model that can shorten its vectors; shorter ones take less memory. Default: the model's own.",
      ),
    price: Price.optional().describe(
      "Price of a million tokens, for the budget and the estimate of `kbsync sync -n`.",
    ),
  })
  .refine(({ baseUrl, model }) => (baseUrl === undefined) === (model === undefined), {
    error: "expected baseUrl and model together, or neither",
  });

const RerankerModel = z.strictObject({
  url: HttpUrl.describe(
    "Whole address of a reranking model in the form of Jina, Cohere, vLLM and TEI, for example `https://api.jina.ai/v1/rerank`. Queries and the best 50 chunks of each search in `high_accuracy` are sent there.",
  ),
  model: modelName,
  apiKeyFile,
});

const LanguageModel = z.strictObject({
  baseUrl: HttpUrl.describe(
    "Address of an OpenAI-compatible service up to the version, for example `https://api.openai.com/v1`. Questions are sent there, with the passages and images that belong to them, and the text of every document with strategy `agentic`.",
  ),
  model: modelName,
  apiKeyFile,
});

const ChatSection = z.strictObject({
  contextTokens: z
    .int()
    .min(1024)
    .max(10_000_000)
    .default(8192)
    .describe(
      "Window in tokens of a model that `models` does not list: passages, images, earlier messages and the answer share it.",
    ),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(3600)
    .default(120)
    .describe("Longest wait for a model's answer, all tries together, and for each piece of a streamed one."),
  models: z
    .record(
      z.string().min(1).max(200),
      z.strictObject({
        contextTokens: z
          .int()
          .min(1024)
          .max(10_000_000)
          .optional()
          .describe("Window of this model in tokens. Default: kb.chat.contextTokens."),
        inputPrice: Price.default(0).describe("Price of a million tokens of input, for usage.cost."),
        cachedInputPrice: Price.optional().describe(
          "Price of a million tokens of input read from the endpoint's cache. Default: inputPrice.",
        ),
        outputPrice: Price.default(0).describe("Price of a million tokens of output."),
      }),
    )
    .default({})
    .describe("Windows and prices of models, by name."),
});

const KbSection = z.strictObject({
  embedding: EmbeddingModel.prefault({}).describe(
    "The model that turns text into vectors for `moderate` and `high_accuracy`.",
  ),
  reranker: RerankerModel.optional().describe(
    "A model that reranks the best hits of `high_accuracy`. Default: none; the embedding model compares sentences.",
  ),
  languageModel: LanguageModel.optional().describe(
    "The model that answers questions, and divides documents with strategy `agentic`. Default: none; the builtin agent answers, and documents are divided by meaning.",
  ),
  budget: z
    .strictObject({
      perDay: Price.optional().describe(
        "Most that models of other services may cost a day (UTC), in the currency of the prices. Default: any.",
      ),
      perMonth: Price.optional().describe("Most that they may cost a month (UTC). Default: any."),
    })
    .prefault({})
    .describe(
      "A cap on the cost of embedding and of language models, which need a price: kb.embedding.price, kb.chat.models.",
    ),
  agents: z
    .array(AgentConfig)
    .max(100)
    .default([])
    .refine((agents) => new Set(agents.map(({ id }) => id)).size === agents.length, {
      error: "expected agents with different ids",
    })
    .describe("Agents that every account has and the API cannot change."),
  chat: ChatSection.prefault({}),
  fetch: z
    .strictObject({
      allow: z
        .array(AllowEntry)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that link resources may be fetched from although they are not public: `wiki.example`, `*.corp.example`, `10.0.0.0/8`. Every key with scope write can read what they serve.",
        ),
    })
    .prefault({}),
  limits: z
    .strictObject({
      requestsPerMinute: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(
          "Requests per minute and key in the long run; further ones get 429 with the seconds to wait. Default: unlimited if only this machine reaches the service, else 600, with a burst of 1200.",
        ),
      burst: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe("Requests that a key may send at once after an idle period. Default: requestsPerMinute."),
      ingests: z
        .int()
        .min(1)
        .max(1024)
        .default(512)
        .describe("Concurrent creates, updates and uploads; further ones get 503 with the seconds to wait."),
      connectionsPerAddress: z
        .int()
        .min(1)
        .max(2048)
        .default(512)
        .describe(
          "Open connections from one address, or one /64 of IPv6; further ones are closed. Behind a proxy all come from its address: 2048 leaves the limit to it.",
        ),
    })
    .prefault({}),
  webhooks: z
    .strictObject({
      allow: z
        .array(AllowEntry)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that webhooks may be sent to although they are not public: `127.0.0.1`, `*.corp.example`, `10.0.0.0/8`. Every key with scope admin can have messages sent there.",
        ),
    })
    .prefault({}),
  retention: z
    .strictObject({
      unusedFileDays: z
        .number()
        .min(0)
        .max(3650)
        .default(7)
        .describe("Days after which an uploaded file that no resource uses is removed."),
      deletedRecordDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe(
          "Days for which records of deleted resources stay readable; their text is removed at once.",
        ),
      threadImageDays: z
        .number()
        .min(0)
        .max(3650)
        .default(7)
        .describe("Days for which questions can refer to earlier images of a thread."),
      threadDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe("Days after its last message when a thread is removed."),
      deadLetterDays: z
        .number()
        .min(0)
        .max(3650)
        .default(30)
        .describe("Days for which webhook messages that were given up can be replayed."),
    })
    .prefault({}),
  ocr: z
    .strictObject({
      languages: z
        .array(
          z
            .string()
            .regex(/^[A-Za-z][A-Za-z0-9_]{1,30}$/, { error: "expected a code such as `eng` or `chi_sim`" }),
        )
        .min(1)
        .max(8)
        .default(["eng"])
        .describe(
          "Languages of text in images and scanned PDFs, as Tesseract codes, the likeliest first. English is in the package; others need dataDir. Each one slows reading.",
        ),
      dataDir: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Folder with the data of each language, English too: `CODE.traineddata`, or all of them as `CODE.traineddata.gz`; relative to the configuration file. Nothing is ever downloaded.",
        ),
      pagesMax: z
        .int()
        .min(0)
        .max(10_000)
        .default(100)
        .describe(
          "Most pages per document whose text is recognised, at some seconds each. Of a longer PDF the first ones are read, and `metadata.warning` of the resource names the others; a longer image is refused. 0: no text recognition, and pages without a text layer add nothing.",
        ),
    })
    .prefault({}),
  resources: z
    .strictObject({
      requireKey: z
        .boolean()
        .optional()
        .describe(
          "Serve uploaded files only to keys of their account. Default: false, the address with its 256 random bits suffices, as at the hosted service. Required if service.host or service.publicUrl opens the service to other machines.",
        ),
    })
    .prefault({}),
});

const MetricsSection = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(255)
    .default("127.0.0.1")
    .describe(
      "Address to listen on for monitoring, if port is set. No key is required: use an address other than loopback only if everyone who reaches it may learn how many documents there are and how fast searches are.",
    ),
  port: z
    .int()
    .min(1)
    .max(65535)
    .optional()
    .describe(
      "Port of `/metrics`, `/healthz` and `/readyz`. Default: none; the embedded service serves them on its port, also for the daemon in the same process.",
    ),
});

const NotifySection = z.strictObject({
  command: z
    .array(z.string().max(4096))
    .min(1)
    .max(100)
    .refine(([file = ""]) => file !== "", { error: "expected the program first" })
    .optional()
    .describe(
      "Program with its arguments that is run when a person is needed, without a shell. It gets the notice as JSON on standard input, and its text in KBSYNC_TEXT.",
    ),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional()
    .describe("Address to which the same JSON is posted."),
  desktop: z
    .boolean()
    .optional()
    .describe(
      "Whether the notice is shown on the desktop, by `notify-send`. Default: true for a unit of a user, otherwise false.",
    ),
});

/**
 * Default number of files in flight. On loopback each transaction of the service takes all that waits, so more in flight
 * means fewer flushes: 20,000 files took 18 s with 24, 10 s with 128. A hosted service has other customers.
 */
export const CONCURRENCY_EMBEDDED = 128;
export const CONCURRENCY_HOSTED = 16;

/** The configuration file, with the defaults. */
export const ConfigFile = z
  .strictObject({
    $schema: z.string().optional(),
    service: z
      .union([EmbeddedService, HostedService])
      .default({ embedded: true, host: HOST_DEFAULT, port: PORT_DEFAULT }),
    stateDir: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Folder for the key, the ledger and the embedded service's data; relative to the configuration file. Default: $STATE_DIRECTORY, else $XDG_STATE_HOME/kbsync, else ~/.local/state/kbsync.",
      ),
    sources: z.array(SourceEntry).max(1000).default([]),
    sync: SyncSection.prefault({}),
    kb: KbSection.prefault({}),
    metrics: MetricsSection.prefault({}),
    notify: NotifySection.prefault({}),
  })
  .superRefine(({ kb: { budget, embedding: text, languageModel: language, chat: talk } }, problems) => {
    if (budget.perDay === undefined && budget.perMonth === undefined) return;
    const missing = (path: string[], what: string): void =>
      problems.addIssue({
        code: "custom",
        path,
        message: `expected ${what}, which kb.budget counts`,
        input: undefined,
      });
    if (text.baseUrl !== undefined && text.price === undefined)
      missing(["kb", "embedding", "price"], "the price of a million tokens");
    if (language !== undefined && !Object.hasOwn(talk.models, language.model))
      missing(["kb", "chat", "models"], `the prices of ${language.model}`);
  })
  .superRefine(({ service }, problems) => {
    if (!("embedded" in service) || service.s3 === undefined || isBucket(service.files)) return;
    const message = "expected service.files to name a bucket, such as s3://bucket/prefix";
    problems.addIssue({ code: "custom", path: ["service", "s3"], message, input: undefined });
  })
  .superRefine(({ service, kb: rules }, problems) => {
    if (!("embedded" in service) || !isExposed(service)) return;
    const { host, publicUrl } = service;
    const missing = (path: string[], message: string): void =>
      problems.addIssue({ code: "custom", path, message, input: undefined });
    if (publicUrl === undefined) {
      missing(
        ["service", "publicUrl"],
        `expected the address by which clients reach the service, because service.host is ${host}`,
      );
    }
    // Every other route always requires a key. For this one a person has to decide.
    if (rules.resources.requireKey === undefined) {
      const reason = isLoopback(host) ? `service.publicUrl is ${publicUrl}` : `service.host is ${host}`;
      missing(
        ["kb", "resources", "requireKey"],
        `expected true (uploaded files are served to keys of their account) or false (to anyone with the address), because ${reason}`,
      );
    }
  })
  .transform(({ kb: rules, ...file }) => ({
    ...file,
    kb: { ...rules, resources: { requireKey: rules.resources.requireKey ?? false } },
  }));
export type ConfigFile = z.infer<typeof ConfigFile>;
export type SourceConfig = ConfigFile["sources"][number];
export type SyncConfig = Omit<ConfigFile["sync"], "concurrency"> & { readonly concurrency: number };
export type KbConfig = ConfigFile["kb"];
export type MetricsConfig = ConfigFile["metrics"];
export type NotifyConfig = ConfigFile["notify"];
export type ServiceConfig = ConfigFile["service"];
