import { z } from "zod";
import { AGENT_ID_CHARS_MAX } from "./agent.ts";
import { Location } from "./location.ts";
import { Count, Id, NumberRange } from "./primitives.ts";
import { IMAGES_MAX, URL_CHARS_MAX } from "./constants.ts";

/** Most bytes of images in one request, all together (the specification's 32 MB). */
export const IMAGES_BYTES_MAX = 32 * 1024 * 1024;
/** Longest question in characters; longer ones exceed most windows. */
export const USER_CHARS_MAX = 200_000;
/** Longest `thread_id` in characters. */
export const THREAD_ID_CHARS_MAX = 256;
/** Variables per request, and the longest value in characters. */
const VARIABLES_MAX = 200;
const VARIABLE_CHARS_MAX = 20_000;
const WEBHOOK_URL_CHARS_MAX = 2048;
const WEBHOOK_HEADERS_MAX = 20;

const agentId = z.string().min(1).max(AGENT_ID_CHARS_MAX);
const threadId = z.string().min(1).max(THREAD_ID_CHARS_MAX);

/** Values for `{{name}}`: a text, or a number or a boolean in JSON notation. */
const variables = z
  .record(z.string().max(200), z.unknown())
  .superRefine((given, context) => {
    if (Object.keys(given).length > VARIABLES_MAX) {
      context.addIssue({ code: "custom", message: `expected at most ${VARIABLES_MAX} variables` });
    }
    for (const [name, value] of Object.entries(given)) {
      const isPlain = ["string", "number", "boolean"].includes(typeof value);
      if (!isPlain || String(value).length > VARIABLE_CHARS_MAX) {
        const message = `expected a text of at most ${VARIABLE_CHARS_MAX} characters, a number, or true or false`;
        context.addIssue({ code: "custom", message, path: [name] });
      }
    }
  })
  // Every value is checked above.
  .transform((given) => given as Readonly<Record<string, string | number | boolean>>);

const headers = z
  .record(z.string().max(200), z.string().max(4096))
  .refine((given) => Object.keys(given).length <= WEBHOOK_HEADERS_MAX, {
    message: `expected at most ${WEBHOOK_HEADERS_MAX} headers`,
  });

/** Body of `POST /api/v2/model/chat/completion`. `stream`, `webhook` and `settings` are additions of ours and the original's. */
export const ChatBody = z
  .object({
    user: z.string().max(USER_CHARS_MAX).optional(),
    agent_id: agentId,
    thread_id: threadId.nullish(),
    response_type: z.enum(["text", "json"]).default("text"),
    variables: variables.optional(),
    user_urls: z
      .array(z.object({ type: z.literal("image"), url: z.string().min(1).max(URL_CHARS_MAX) }))
      .max(IMAGES_MAX)
      .default([]),
    /** Answers as server-sent events. */
    stream: z.boolean().default(false),
    /** Answers 202 at once and delivers the result to this URL. */
    webhook: z
      .object({
        url: z.string().min(1).max(WEBHOOK_URL_CHARS_MAX),
        secret: z.string().min(1).max(100).optional(),
        headers: headers.optional(),
      })
      .optional(),
    settings: z
      .object({
        response_format: z
          .object({
            type: z.string().max(100),
            cred: z
              .object({ url: z.string().min(1).max(WEBHOOK_URL_CHARS_MAX), headers: headers.optional() })
              .optional(),
          })
          .optional(),
      })
      .optional(),
  })
  .meta({ id: "ChatBody" });
export type ChatBody = z.infer<typeof ChatBody>;

/** A passage that the answer uses. Offsets are UTF-16 units into the resource's content, end exclusive. */
export const Citation = z
  .object({
    type: z.literal("citation"),
    /** Its number in the answer's text, as in `[2]`. */
    number: z.int().min(1),
    resource_id: Id,
    title: z.string(),
    /** Title and headings in one line. This and the fields below are absent in answers of older services. */
    path: z.string().optional(),
    chunk_id: z.string(),
    score: z.number(),
    span: z.object({ start: Count, end: Count, text: z.string() }),
    /** Lines, pages and locations of the span, as in a search result. */
    lines: NumberRange.optional(),
    pages: NumberRange.optional(),
    locations: z.array(Location).optional(),
    /** The version that is cited, and the SHA-256 of its content, as in a search result. */
    version: z.int().min(1).optional(),
    sha256: z.string().optional(),
    /** The url of a file or link resource. */
    fileUrl: z.string().optional(),
    /** The file in its synced folder, as in a search result. */
    filePath: z.string().optional(),
    /** Context from the resource's metadata, as in a search result. */
    folderDescription: z.string().optional(),
  })
  .meta({ id: "Citation" });
export type Citation = z.infer<typeof Citation>;

/** A citation of an answer, or a remark on how the answer came about. */
export const Annotation = z
  .discriminatedUnion("type", [
    Citation,
    z.object({ type: z.literal("missing_variable"), name: z.string() }),
    /** An image of the thread that exceeded the request's limits or could not be read. */
    z.object({ type: z.literal("image_left_out"), url: z.string(), reason: z.string() }),
    /** Earlier messages of the thread that did not fit the model's window. */
    z.object({ type: z.literal("messages_left_out"), count: Count }),
    /** Passages that did not fit the model's window. */
    z.object({ type: z.literal("passages_left_out"), count: Count }),
  ])
  .meta({ id: "Annotation" });
export type Annotation = z.infer<typeof Annotation>;

export const Usage = z
  .object({
    total_tokens: Count,
    input_tokens: Count,
    output_tokens: Count,
    cached_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    reasoning_tokens: Count,
    cost: z.number().min(0),
  })
  .meta({ id: "Usage" });
export type Usage = z.infer<typeof Usage>;

export const FinishReason = z.enum(["completed", "truncated", "content_filter", "error"]);
export type FinishReason = z.infer<typeof FinishReason>;

export const ChatResponse = z
  .object({
    data: z.object({
      id: z.string(),
      content: z.string(),
      model: z.string(),
      role: z.literal("assistant"),
      finish_reason: FinishReason,
      tools_data: z.record(z.string(), z.unknown()),
      /** URLs of the images that were used, including those of the thread. */
      images: z.array(z.string()),
      annotations: z.array(Annotation),
      fallback: z.boolean(),
      firstAttemptError: z.string(),
      message_id: z.string(),
    }),
    usage: Usage,
  })
  .meta({ id: "ChatResponse" });
export type ChatResponse = z.infer<typeof ChatResponse>;

/** Answer of the chat completion. */
export const ChatAnswer = z
  .object({ success: z.literal(true), response: ChatResponse })
  .meta({ id: "ChatAnswer" });
export type ChatAnswer = z.infer<typeof ChatAnswer>;

/** Answer to a request whose result goes to a webhook. */
export const ChatAccepted = z
  .object({
    success: z.literal(true),
    message: z.string(),
    message_id: z.string(),
    /** Whether the delivery will be signed, which requires a secret in the request (an addition). */
    signed: z.boolean(),
  })
  .meta({ id: "ChatAccepted" });

/** Data of the event `delta` in a streamed answer. */
export const ChatDelta = z.object({ content: z.string() }).meta({ id: "ChatDelta" });
export type ChatDelta = z.infer<typeof ChatDelta>;
export type ChatAccepted = z.infer<typeof ChatAccepted>;

/** Body of the delivery to a request's webhook. */
export const ChatDelivery = z.object({
  success: z.boolean(),
  response: ChatResponse.optional(),
  /** As in an immediate answer. */
  error: z
    .object({
      code: z.string(),
      message: z.string(),
      hint: z.string().optional(),
      field: z.string().optional(),
    })
    .optional(),
  message_id: z.string(),
  variables: z.record(z.string(), z.unknown()),
});
export type ChatDelivery = z.infer<typeof ChatDelivery>;

/** Form of `POST /files/upload`. With both ids the image joins the thread; otherwise it is only stored. */
export const ChatUploadForm = z.object({
  file: z.file(),
  agent_id: agentId.optional(),
  thread_id: threadId.optional(),
});
/** Its text fields. */
export const ChatUploadFields = ChatUploadForm.omit({ file: true });
export type ChatUploadFields = z.infer<typeof ChatUploadFields>;
