import { z } from "zod";
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
import { DESCRIPTION_CHARS_MAX, OWNER_CHARS_MAX, TITLE_CHARS_MAX } from "../wire/resource.ts";
import { UPLOAD_BYTES_MAX } from "../wire/upload.ts";

/** Where the embedded service listens when nothing is said: for this machine alone. */
export const HOST_DEFAULT = "127.0.0.1";
/** Port of the embedded service when none is given. */
export const PORT_DEFAULT = 7411;

const httpUrl = z
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

const glob = z.string().min(1).max(1000);

const rule = z.strictObject({
  match: glob.describe("Glob over the path below the source, for example `manuals/**/*.pdf`."),
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

const source = z.strictObject({
  path: z.string().min(1).describe("The folder to watch; relative to the configuration file."),
  ownerId: z
    .string()
    .min(1)
    .max(OWNER_CHARS_MAX)
    .optional()
    .describe(
      "Owner of this source's resources, to be sent again in a collection search. Default: the folder's name and a short hash of its path.",
    ),
  collection: Tier.default("fastest").describe(
    "Retrieval tier. `fastest` searches words, `moderate` adds the local language model.",
  ),
  collectionId: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("The collection's id at the service, if known. Saves a probe after a lost ledger."),
  settings: settings.prefault({}).describe("Chunking of this source's files."),
  include: z
    .array(glob)
    .max(1000)
    .default([])
    .describe("Only files that match one of these globs. Default: every file of a known kind."),
  exclude: z.array(glob).max(1000).default([]).describe("Files that match one of these globs are left out."),
  rules: z
    .array(rule)
    .max(1000)
    .default([])
    .describe("Other settings, title or description by glob; a later rule wins over an earlier one."),
  maxFileBytes: z
    .int()
    .min(1)
    .default(UPLOAD_BYTES_MAX)
    .describe("Larger files are not read but reported. Default: 32 MB, the service's limit."),
  followSymlinks: z
    .boolean()
    .default(false)
    .describe(
      "Take what symbolic links lead to, under the link's own path, as long as it lies inside this folder. Default: links are left out.",
    ),
});

const embedded = z.strictObject({
  embedded: z.literal(true).describe("Run the service in this process."),
  host: z
    .string()
    .min(1)
    .max(255)
    .default(HOST_DEFAULT)
    .describe(
      "Address to listen on. Another than this machine's own lets others reach the service: `0.0.0.0` all that reach this machine. Then publicUrl and kb.resources.requireKey must be given, and keys and documents travel readable unless a proxy with TLS stands before it.",
    ),
  port: z.int().min(0).max(65535).default(PORT_DEFAULT).describe("0 takes any free port."),
  publicUrl: httpUrl
    .optional()
    .describe(
      "Address by which clients reach the service, that of a proxy before it for example; addresses of uploaded files begin with it. One that is not this machine's own lets others reach the service, as such a host does: kb.resources.requireKey must be given. Default: where it listens.",
    ),
  modelDir: z
    .string()
    .min(1)
    .optional()
    .describe("Folder of the local embedding model, if not the packaged one."),
});

const hosted = z.strictObject({
  apiUrl: httpUrl.describe("Main host: uploads and search."),
  dbUrl: httpUrl.describe("Host that stores resources."),
  resourcesUrl: httpUrl.describe("Host that serves uploaded files."),
  pauthkeyFile: z
    .string()
    .min(1)
    .optional()
    .describe("File that holds the key. The environment variable KBSYNC_PAUTHKEY is used instead when set."),
});

const sync = z.strictObject({
  settleMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(150)
    .describe(
      "A changed file is read once it has rested this long. Longer than the gap between an editor's writes.",
    ),
  concurrency: z
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe(
      "Most files on their way to the service at once; lowered by itself when the service asks. Default: 128 for the embedded service, whose writes share their flush to disk, 16 for a hosted one.",
    ),
  requestTimeoutMs: z
    .int()
    .min(1000)
    .max(3_600_000)
    .default(120_000)
    .describe("Longest wait for one answer. A large PDF takes a while to be split."),
  rescanMinutes: z
    .int()
    .min(1)
    .max(10_080)
    .default(60)
    .describe("Compare the whole folder with the ledger this often; finds what gave no event."),
  auditHours: z
    .number()
    .min(0)
    .max(8760)
    .default(24)
    .describe(
      "While the daemon runs, compare the ledger with the service's own list this often and put right what others changed; 0: never. A service without pages sends all texts for it.",
    ),
  holdDeletesOver: z
    .int()
    .min(0)
    .default(50)
    .describe(
      "More deletes within ten minutes than this, and than holdDeletesPercent, are held until a person agrees. In a folder of fewer than twice as many files the limit is half of its files, but at least 10.",
    ),
  holdDeletesPercent: z
    .number()
    .min(0)
    .max(100)
    .default(20)
    .describe(
      "Share of the folder's files that deletes must exceed to be held; 100: only those of an emptied folder are.",
    ),
  trashDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe(
      "Keep the text of a deleted file in the state folder for so many days, to be put back with `kbsync undelete`; 0: never. One more request a delete.",
    ),
});

const allowed = z
  .string()
  .min(1)
  .max(300)
  .refine(isAllowEntry, { error: "expected a host name, *.name, an address or a range such as 10.0.0.0/8" });

const modelName = z.string().min(1).max(200).describe("The model's name at that service.");
const apiKeyFile = z
  .string()
  .min(1)
  .optional()
  .describe(
    "File that holds the service's key, sent as a bearer token; relative to the configuration file. Default: no key is sent.",
  );

const embedding = z
  .strictObject({
    baseUrl: httpUrl
      .optional()
      .describe(
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
        "Asked of a model that can cut its vectors short; fewer take less memory. Default: what it gives.",
      ),
  })
  .refine(({ baseUrl, model }) => (baseUrl === undefined) === (model === undefined), {
    error: "expected baseUrl and model together, or neither",
  });

const reranker = z.strictObject({
  url: httpUrl.describe(
    "Whole address of a reranking model in the form of Jina, Cohere, vLLM and TEI, for example `https://api.jina.ai/v1/rerank`. Queries and the best 50 chunks of each search in `high_accuracy` are sent there.",
  ),
  model: modelName,
  apiKeyFile,
});

const languageModel = z.strictObject({
  baseUrl: httpUrl.describe(
    "Address of an OpenAI-compatible service up to the version, for example `https://api.openai.com/v1`. Questions are sent there, with the passages and images that belong to them, and the text of every document with strategy `agentic`.",
  ),
  model: modelName,
  apiKeyFile,
});

const price = z.number().min(0).max(1_000_000);

const chat = z.strictObject({
  contextTokens: z
    .int()
    .min(1024)
    .max(10_000_000)
    .default(8192)
    .describe(
      "Window of a model that `models` does not list, in tokens: what passages, images and earlier messages have to share with the answer.",
    ),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(3600)
    .default(120)
    .describe(
      "Longest wait for a model's answer, all tries together, and for its next piece where it streams.",
    ),
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
        inputPrice: price.default(0).describe("Price of a million tokens of input; usage.cost comes of it."),
        cachedInputPrice: price
          .optional()
          .describe(
            "Price of a million tokens of input read from the endpoint's cache. Default: inputPrice.",
          ),
        outputPrice: price.default(0).describe("Price of a million tokens of output."),
      }),
    )
    .default({})
    .describe("What is known of models, by name."),
});

const kb = z.strictObject({
  embedding: embedding
    .prefault({})
    .describe("The model that turns text into vectors for `moderate` and `high_accuracy`."),
  reranker: reranker
    .optional()
    .describe(
      "A model that `high_accuracy` puts the best hits in order with. Default: none, it compares sentences by the embedding model.",
    ),
  languageModel: languageModel
    .optional()
    .describe(
      "The model that answers questions, and divides documents with strategy `agentic`. Default: none; the builtin agent answers, and documents are divided by meaning.",
    ),
  agents: z
    .array(AgentConfig)
    .max(100)
    .default([])
    .refine((agents) => new Set(agents.map(({ id }) => id)).size === agents.length, {
      error: "expected agents with different ids",
    })
    .describe("Agents that every account has and the API cannot change."),
  chat: chat.prefault({}),
  fetch: z
    .strictObject({
      allow: z
        .array(allowed)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that link resources may be fetched from although they are not public: `wiki.example`, `*.corp.example`, `10.0.0.0/8`. Everybody with a key that may write can read what answers there.",
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
          "Requests a minute that each key may send in the long run; one more is answered 429 with the seconds to wait. Default: as many as it likes where the service listens on this machine alone, else 600, with 1200 at once.",
        ),
      burst: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe("Requests that a key may send at once after a rest. Default: requestsPerMinute."),
      ingests: z
        .int()
        .min(1)
        .max(1024)
        .default(512)
        .describe(
          "Creates, updates and uploads under way at once; one more is answered 503 with the seconds to wait.",
        ),
      connectionsPerAddress: z
        .int()
        .min(1)
        .max(2048)
        .default(512)
        .describe(
          "Connections open at once from one address, or one /64 of IPv6; one more is closed. Behind a proxy all come from its address: 2048 leaves the limit to it.",
        ),
    })
    .prefault({}),
  webhooks: z
    .strictObject({
      allow: z
        .array(allowed)
        .max(1000)
        .default([])
        .describe(
          "Hosts, addresses and ranges that webhooks may be sent to although they are not public: `127.0.0.1`, `*.corp.example`, `10.0.0.0/8`. Everybody with a key of scope admin can have messages sent there.",
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
        .describe("Uploaded files that no resource uses are removed after so many days."),
      deletedRecordDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe("Records of deleted resources stay readable so many days; their text goes at once."),
      threadImageDays: z
        .number()
        .min(0)
        .max(3650)
        .default(7)
        .describe("Images of a thread can be asked about without sending them again for so many days."),
      threadDays: z
        .number()
        .min(0)
        .max(3650)
        .default(90)
        .describe("Threads are forgotten so many days after their last message."),
      deadLetterDays: z
        .number()
        .min(0)
        .max(3650)
        .default(30)
        .describe("Webhook messages that were given up can be sent again for so many days."),
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
          "Languages of the text that is recognised in images and scanned PDFs, by Tesseract's codes, the likeliest first. English is in the package; any other needs dataDir. Each makes reading slower.",
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
          "Most pages of one document whose text is recognised, some seconds each; of a PDF with more the first ones are, and `metadata.warning` of the resource names the others; an image of more is refused. 0: no text is recognised at all, and pages without a text layer add nothing.",
        ),
    })
    .prefault({}),
  resources: z
    .strictObject({
      requireKey: z
        .boolean()
        .optional()
        .describe(
          "Serve uploaded files only to keys of their account. Default: false, whoever has the address of 256 random bits can read, as at the hosted service; where service.host or service.publicUrl lets others reach the service there is none.",
        ),
    })
    .prefault({}),
});

const metrics = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(255)
    .default("127.0.0.1")
    .describe(
      "Address to listen on for monitoring, where port is given. No key is asked for: give another than this machine's own only where those who reach it may know how many documents there are, and how fast searches are.",
    ),
  port: z
    .int()
    .min(1)
    .max(65535)
    .optional()
    .describe(
      "Port of `/metrics`, `/healthz` and `/readyz`. Default: none of its own; the embedded service answers them on its port, and for the daemon in the same process.",
    ),
});

/**
 * Files on their way at once where the configuration names no number. On loopback each transaction of the service
 * takes what waits, so that more in flight means fewer flushes: 20,000 files took 18 s with 24, 10 s with 128.
 * A hosted service has other customers.
 */
export const CONCURRENCY_EMBEDDED = 128;
export const CONCURRENCY_HOSTED = 16;

/** The configuration file. Defaults stand here, each with its reason in the description. */
export const ConfigFile = z
  .strictObject({
    $schema: z.string().optional(),
    service: z.union([embedded, hosted]).default({ embedded: true, host: HOST_DEFAULT, port: PORT_DEFAULT }),
    stateDir: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Folder for the key, the ledger and the embedded service's data; relative to the configuration file. Default: $STATE_DIRECTORY, else $XDG_STATE_HOME/kbsync, else ~/.local/state/kbsync.",
      ),
    sources: z.array(source).max(1000).default([]),
    sync: sync.prefault({}),
    kb: kb.prefault({}),
    metrics: metrics.prefault({}),
  })
  .superRefine(({ service, kb: rules }, problems) => {
    if (!("embedded" in service) || !isExposed(service)) return;
    const { host, publicUrl } = service;
    const missing = (path: string[], message: string): void =>
      problems.addIssue({ code: "custom", path, message, input: undefined });
    if (publicUrl === undefined) {
      missing(
        ["service", "publicUrl"],
        `expected the address by which clients reach the service, for service.host is ${host}`,
      );
    }
    // Every other route asks for a key by itself. Of this one a person has to say what is meant.
    if (rules.resources.requireKey === undefined) {
      const reason = isLoopback(host) ? `service.publicUrl is ${publicUrl}` : `service.host is ${host}`;
      missing(
        ["kb", "resources", "requireKey"],
        `expected true (uploaded files are served to keys of their account) or false (to whoever has the address), for ${reason}`,
      );
    }
  })
  .transform(({ kb: rules, ...file }) => ({
    ...file,
    kb: { ...rules, resources: { requireKey: rules.resources.requireKey ?? false } },
  }));
export type ConfigFile = z.infer<typeof ConfigFile>;
export type SourceConfig = ConfigFile["sources"][number];
export type SourceRule = SourceConfig["rules"][number];
export type SyncConfig = Omit<ConfigFile["sync"], "concurrency"> & { readonly concurrency: number };
export type KbConfig = ConfigFile["kb"];
export type MetricsConfig = ConfigFile["metrics"];
export type ServiceConfig = ConfigFile["service"];
