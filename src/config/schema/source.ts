import picomatch from "picomatch";
import { z } from "zod";
import { messageOf } from "../../lib/failure.ts";
import {
  CHUNK_CHARS_DEFAULT,
  CHUNK_CHARS_MAX,
  CHUNK_CHARS_MIN,
  completeSettings,
  Strategy,
  Tier,
} from "../../wire/primitives.ts";
import { DESCRIPTION_CHARS_MAX, OWNER_CHARS_MAX, UPLOAD_BYTES_MAX } from "../../wire/constants.ts";
import {
  FILE_METADATA_KEYS,
  keyProblem,
  METADATA_STRING_CHARS_MAX,
  METADATA_VALUES_MAX,
} from "../../wire/metadata.ts";

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
  .transform(completeSettings)
  .refine(({ chunkSize, chunkOverlap }) => chunkOverlap < chunkSize, {
    error: "expected a number below chunkSize",
    path: ["chunkOverlap"],
  });

/** A glob over paths below a source. */
const GlobText = z
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
  const parts = text.replace(/^\.?\//, "").split("/");
  if (parts.includes(".") || parts.slice(0, -1).includes("") || parts.join("") === "")
    return "expected names with one `/` between them";
  if (parts[0] === "~") return "expected a path below the source: `~` is no folder here";
  if (/^\s|\s$|\p{Cc}/u.test(text)) return "expected a glob without blanks at its ends";
  if (/\\(?![[\](){}!+@|])/.test(text))
    return "expected `/` between folders: `\\` takes its meaning from the character after it (a star in a name is `[*]`)";
  if (text.split("/").includes("..")) return "expected a path below the source, without `..`";
  try {
    picomatch.makeRe(text, { strictBrackets: true });
    return undefined;
  } catch (error) {
    return `expected a glob: ${messageOf(error)}`;
  }
}

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

const rule = z.strictObject({
  match: GlobText.describe("Glob over the path below the source, for example `manuals/**/*.pdf`."),
  description: z
    .string()
    .max(DESCRIPTION_CHARS_MAX)
    .optional()
    .describe("Description of the files that match; {path}, {name} and {title} are filled in."),
  metadata: z
    .record(z.string(), fixedValue)
    .superRefine((metadata, context) => {
      for (const [name, value] of Object.entries(metadata)) {
        const problem = fixedProblem(name, value);
        if (problem !== undefined) context.addIssue({ code: "custom", path: [name], message: problem });
      }
    })
    .optional()
    .describe(
      "Metadata of the files that match, for services that take it: strings, numbers, true and false by name. `tags` is a list, which joins the file's own.",
    ),
});

/** Schema of an entry of `sources`. */
export const SourceEntry = z.strictObject({
  path: z.string().min(1).describe("The folder to watch; relative to the configuration file."),
  id: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe(
      "Name of this source in the marker at the end of each description, by which a lost ledger finds its documents again. Default: the folder's name at the first sync.",
    ),
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
  deletes: z
    .enum(["mirror", "never"])
    .default("mirror")
    .describe(
      "`mirror`: a document is deleted with its file. `never`: documents stay when their files are gone or left out.",
    ),
  gitignore: z
    .boolean()
    .optional()
    .describe(
      "Whether `.gitignore` files count. Default: if the folder is in a Git work tree that does not ignore it.",
    ),
  allowSecrets: z
    .array(GlobText)
    .max(1000)
    .default([])
    .describe(
      "Files that match one of these globs are sent although a secret may be in them; `**` turns the check off.",
    ),
  rules: z
    .array(rule)
    .max(1000)
    .default([])
    .describe(
      "Descriptions and metadata by glob. Of all rules that match, a later one overrides an earlier one, name by name.",
    ),
  maxFileBytes: z
    .int()
    .min(1)
    .default(UPLOAD_BYTES_MAX)
    .describe("Larger files are not read but reported. Default: 32 MB, the service's limit."),
});
