import { hash } from "node:crypto";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../../wire/routes.ts";
import { ChatUploadFields, ChatUploadForm } from "../../../wire/chat.ts";
import { UploadAnswer, UploadForm } from "../../../wire/upload.ts";
import type { Chat } from "../../chat/chat.ts";
import { detectMediaType } from "../../ingest/extract/media-type.ts";
import type { RequestContext } from "../../resources/request-context.ts";
import type { Received } from "../../uploads/file-store.ts";
import { Refusal } from "../../resources/refusal.ts";
import { fileTooLarge, storeUpload, finishUpload, receiveUpload } from "../../resources/upload.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import type { KeyScope } from "../../store/accounts.ts";
import type { StoredFile } from "../../store/files.ts";
import { disconnectSignal } from "../limits/disconnect.ts";
import { readIdempotencyKey, readStoredAnswer } from "../operation/idempotency.ts";
import type { SentAnswer } from "../operation/idempotency.ts";
import { callerOf, requireKey, routeConfig, send } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { IDEMPOTENCY_DOC } from "../operation/route-table.ts";
import type { RouteDoc } from "../operation/route-table.ts";
import { openUploadPace, type UploadPace } from "../limits/upload-pace.ts";
import { readInput } from "../body/validate.ts";

const DOC: RouteDoc = {
  summary: "Stores a file and returns its file_url.",
  tag: "Files",
  form: UploadForm,
  headers: { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_DOC },
  answers: { 200: UploadAnswer },
};
const CHAT_DOC: RouteDoc = {
  ...DOC,
  summary: "Stores an image for chat, linked to a thread of an agent, and returns its file_url.",
  tag: "Chat",
  form: ChatUploadForm,
};

/** Bytes of a form besides its file: boundaries, part headers, a few fields. */
const FORM_BYTES = 64 * 1024;

/** Adds operations 1 and 8, in a scope of their own: the multipart plugin adds hooks that would slow down other routes. */
export async function addUploadRoutes(scope: FastifyInstance, parts: HttpParts, chat: Chat): Promise<void> {
  const { kb } = parts;
  const { uploadBytes } = kb.limits;
  const pace = openUploadPace(async (accountId) => (await kb.queue.figures("ingest", accountId)).waiting);
  await scope.register(multipart, {
    // One byte above the limit, so that the receiver detects the excess and refuses with its own message.
    limits: { fileSize: uploadBytes + 1, files: 1, fields: 20, parts: 21, fieldSize: 4096, headerPairs: 50 },
    throwFileSizeLimit: false,
  });
  addUpload(scope, parts, pace, {
    url: ROUTES.upload,
    scope: "write",
    doc: DOC,
    fields: [],
    check: async () => ({}),
  });
  addUpload(scope, parts, pace, {
    url: ROUTES.chatUpload,
    scope: "chat",
    doc: CHAT_DOC,
    fields: ["agent_id", "thread_id"],
    check: async (accountId, { received, fields }) => {
      const thread = await chat.threadOf(accountId, readInput(ChatUploadFields, fields));
      await chat.checkUpload(accountId, received.path, await detectMediaType(received.path));
      return thread === undefined ? {} : { thread };
    },
  });
}

/** An upload operation. */
interface Upload {
  readonly url: string;
  readonly scope: KeyScope;
  readonly doc: RouteDoc;
  /** Text fields that are read; others are ignored. */
  readonly fields: readonly string[];
  /** Checks a form before its file is stored. Returns the thread to link the file to. */
  check(accountId: string, form: ReceivedForm): Promise<Pick<RequestContext, "thread">>;
}

/** A form whose file is on disk. */
interface ReceivedForm {
  readonly received: Received;
  readonly name: string;
  /** The media type that the part declares; by default `text/plain`. */
  readonly type: string;
  readonly fields: Readonly<Record<string, string>>;
}

function addUpload(scope: FastifyInstance, parts: HttpParts, pace: UploadPace, upload: Upload): void {
  const { kb, idempotency } = parts;
  const { uploadBytes } = kb.limits;
  const hooks = {
    onRequest: requireKey(parts, upload.scope),
    config: routeConfig(upload.scope, upload.doc),
  };
  scope.post(upload.url, hooks, async (request, reply) => {
    const { accountId } = callerOf(request);
    const key = readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
    refuseForm(request, uploadBytes);
    await pace.turn(accountId, disconnectSignal(request, reply));
    const form = await receiveFile(parts, request, upload.fields);
    const { received, name, type, fields } = form;

    const answer = (file: Pick<StoredFile, "token" | "name">): SentAnswer => {
      const body: UploadAnswer = { success: true, file_url: kb.addresses.urlOf(file) };
      return { status: 200, body: JSON.stringify(body) };
    };
    let isFirst = false;
    try {
      const store = async (context: RequestContext): Promise<SentAnswer> => {
        const thread = await upload.check(accountId, form);
        isFirst = true;
        const stored = storeUpload(kb, accountId, received, { name, type }, { ...context, ...thread });
        return answer(await stored);
      };
      if (key === undefined) return send(reply, await store({}));
      // Only name, content and known fields identify the form: its boundary differs in every attempt.
      const fieldText = Object.keys(fields).length === 0 ? "" : ` ${JSON.stringify(fields)}`;
      const sha256 = hash("sha256", `${upload.url} ${received.sha256} ${name} ${type}${fieldText}`, "hex");
      const work = () => store({ request: { key, bodySha256: sha256 } });
      const replay = async (noted: StoredAnswer): Promise<SentAnswer> => {
        const note = readStoredAnswer(noted);
        if (note.kind === "file") {
          await finishUpload(kb, note.file);
          return answer(note.file);
        }
        throw new Error("an upload was noted as something else");
      };
      return send(reply, await idempotency.once({ accountId, key, sha256 }, work, replay));
    } finally {
      // `storeUpload` handles the bytes of the first request itself.
      if (!isFirst) await kb.files.discard(received.token);
    }
  });
}

function refuseForm(request: FastifyRequest, uploadBytes: number): void {
  if (!request.isMultipart()) {
    throw new Refusal(
      "unsupported_media_type",
      "An upload is a multipart/form-data body with the part file.",
    );
  }
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > uploadBytes + FORM_BYTES) throw fileTooLarge(uploadBytes);
}

async function receiveFile(
  { kb }: HttpParts,
  request: FastifyRequest,
  wanted: readonly string[],
): Promise<ReceivedForm> {
  let found: Omit<ReceivedForm, "fields"> | undefined;
  const fields = new Map<string, string>();
  try {
    for await (const part of request.parts()) {
      if (part.type !== "file") {
        if (typeof part.value === "string" && wanted.includes(part.fieldname))
          fields.set(part.fieldname, part.value);
        continue;
      }
      if (part.fieldname !== "file") {
        throw new Refusal(
          "invalid_field",
          `file: expected the file in the part "file", got it in another one.`,
          {
            field: "file",
          },
        );
      }
      // The type declares a name, but a part may have none.
      const { filename = "" } = part as { readonly filename?: string };
      found = { received: await receiveUpload(kb, part.file), name: filename, type: part.mimetype };
    }
  } catch (error) {
    if (found !== undefined) await kb.files.discard(found.received.token);
    throw formFailure(error, request);
  }
  if (found !== undefined) return { ...found, fields: Object.fromEntries(fields) };
  throw new Refusal(
    "invalid_field",
    "file: expected a multipart form with a file in the part file, got none.",
    {
      field: "file",
    },
  );
}

/** Converts errors of the form parser, which are plain ones for an invalid form. Disk failures have a system code. */
function formFailure(error: unknown, { raw }: FastifyRequest): unknown {
  // The client disconnected before its body was complete, which caused the failure.
  if (!(error instanceof Refusal) && raw.destroyed && !raw.complete) {
    return new Refusal("invalid_body", "The client interrupted the upload.", { cause: error });
  }
  if (!(error instanceof Error) || error instanceof Refusal || "code" in error) return error;
  return new Refusal("invalid_body", "The body is not a complete multipart form.", { cause: error });
}
