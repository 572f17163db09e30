import type { Tier } from "../wire/primitives.ts";
import { configJsonSchema, type JsonSchema, schemaAt } from "./json-schema.ts";
import { CONFIG_MANUAL } from "./config-file.ts";
import { spaced } from "./edit.ts";
import { ConfigFile } from "./schema.ts";

/** A person's choices for a new configuration. */
export interface Wishes {
  /** Folders to watch, absolute. */
  readonly folders: readonly string[];
  readonly collection: Tier;
  readonly service:
    | { readonly apiUrl?: never }
    | {
        readonly apiUrl: string;
        readonly dbUrl: string;
        readonly resourcesUrl: string;
        readonly pauthkeyFile: string | undefined;
      };
  /** Undefined: the default. */
  readonly stateDir: string | undefined;
  /** Path of the JSON Schema, for editors. */
  readonly schema: string | undefined;
}

/** Example values of keys without a default. */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  stateDir: "~/.local/state/kbsync",
  database: "postgres://kbsync@db.example/kbsync",
  id: "docs",
  ownerId: "my-documents",
  gitignore: true,
  requestsPerMinute: 600,
  reranker: { url: "https://api.jina.ai/v1/rerank", model: "jina-reranker-v2-base-multilingual" },
  languageModel: { baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3:4b" },
  metrics: "127.0.0.1:9464",
};

const INDENT = "  ";
const LINE_CHARS = 100;

/**
 * Writes a configuration: the chosen values, and every other key as a comment with its meaning and default. Generated from
 * the schema, so it is always complete.
 */
export function configText({ folders, collection, service, stateDir, schema }: Wishes): string {
  const root = configJsonSchema();
  const sourceNode = schemaAt(schemaAt(root, "sources"), "0");
  const [sourceDefaults = {}] = ConfigFile.parse({ sources: [{ path: "." }] }).sources;
  const lines = [
    ...comment(
      0,
      "The configuration of kbsync. Lines that begin with // show all other keys, with the default or an example.",
    ),
    ...comment(
      0,
      `\`kbsync doctor\` checks whether kbsync can work with it. ${CONFIG_MANUAL} explains every key.`,
    ),
    "{",
    ...(schema === undefined ? [] : [`${INDENT}${entry("$schema", schema)}`]),
    ...describedEntry(1, root, "service", service),
    ...(stateDir === undefined
      ? offered(1, root, "stateDir", undefined)
      : describedEntry(1, root, "stateDir", stateDir)),
    `${INDENT}"sources": [`,
    ...folders.flatMap((path, at) => [
      `${INDENT.repeat(2)}{`,
      ...describedEntry(3, sourceNode, "path", path),
      ...describedEntry(3, sourceNode, "collection", collection),
      ...offered(3, sourceNode, "ownerId", undefined),
      // Equal for all sources, so offered once.
      ...(at === 0 ? offers(3, sourceNode, ["path", "collection", "ownerId"], sourceDefaults) : []),
      `${INDENT.repeat(2)}},`,
    ]),
    `${INDENT}],`,
    ...section(root, "sync"),
    ...section(root, "kb"),
    ...offered(1, root, "metrics", undefined),
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

/** A section in which every key is a comment. */
function section(root: JsonSchema, key: "sync" | "kb"): string[] {
  return [
    `${INDENT}${JSON.stringify(key)}: {`,
    ...offers(2, schemaAt(root, key), [], ConfigFile.parse({})[key]),
    `${INDENT}},`,
  ];
}

/** Every key of a node except some, as comments. */
function offers(depth: number, node: JsonSchema, but: readonly string[], defaults: object): string[] {
  const keys = Object.keys(node.properties ?? {}).filter((key) => !but.includes(key));
  return keys.flatMap((key) => offered(depth, node, key, Reflect.get(defaults, key)));
}

/** A key as a comment, with its meaning and its default or an example. */
function offered(depth: number, node: JsonSchema, key: string, byDefault: unknown): string[] {
  return describedEntry(depth, node, key, byDefault ?? EXAMPLES[key], "// ");
}

function describedEntry(depth: number, node: JsonSchema, key: string, value: unknown, mark = ""): string[] {
  const meaning = schemaAt(node, key).description ?? "";
  return [...comment(depth, meaning), `${INDENT.repeat(depth)}${mark}${entry(key, value)}`];
}

function entry(key: string, value: unknown): string {
  return `${JSON.stringify(key)}: ${spaced(value)},`;
}

/** Breaks a text into lines of comments. */
function comment(depth: number, text: string): string[] {
  const indent = `${INDENT.repeat(depth)}// `;
  const line = new RegExp(`(?=\\S)(?:.{1,${LINE_CHARS - indent.length}}(?=\\s|$)|\\S+)`, "g");
  return (text.match(line) ?? []).map((words) => indent + words);
}
