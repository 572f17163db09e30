import { hash } from "node:crypto";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../wire/routes.ts";
import { UploadAnswer, UploadForm } from "../../wire/upload.ts";
import type { Asked } from "../resources/asked.ts";
import type { Received } from "../resources/file-area.ts";
import { Refusal } from "../resources/refusal.ts";
import { fileTooLarge, keepUpload, placeUpload, receiveUpload } from "../resources/upload.ts";
import type { KeptAnswer } from "../store/request-note.ts";
import type { StoredFile } from "../store/store.ts";
import { readIdempotencyKey, readKept } from "./idempotency.ts";
import type { SentAnswer } from "./idempotency.ts";
import { callerOf, requireKey, routeConfig, send } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { IDEMPOTENCY_DOC } from "./route-table.ts";
import type { RouteDoc } from "./route-table.ts";

const DOC: RouteDoc = {
  summary: "Keeps a file and answers its file_url.",
  tag: "Files",
  form: UploadForm,
  headers: { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_DOC },
  answers: { 200: UploadAnswer },
};

/** What a form may take besides its file: boundaries, part headers, a few fields. */
const FORM_BYTES = 64 * 1024;

/** Operation 1. In a scope of its own: the multipart plugin adds hooks that other routes need not pay for. */
export async function addUploadRoutes(scope: FastifyInstance, parts: HttpParts): Promise<void> {
  const { kb, keyring, idempotency } = parts;
  const { uploadBytes } = kb.limits;
  await scope.register(multipart, {
    // One byte more than allowed: the receiver counts and refuses in its own words.
    limits: { fileSize: uploadBytes + 1, files: 1, fields: 20, parts: 21, fieldSize: 4096, headerPairs: 50 },
    throwFileSizeLimit: false,
  });

  const hooks = { onRequest: requireKey(keyring, "write"), config: routeConfig("write", DOC) };
  scope.post(ROUTES.upload, hooks, async (request, reply) => {
    const { accountId } = callerOf(request);
    const key = readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
    refuseForm(request, uploadBytes);
    const { received, name } = await receiveFile(parts, request);

    const answer = (file: Pick<StoredFile, "token" | "name">): SentAnswer => ({
      status: 200,
      body: JSON.stringify({ success: true, file_url: kb.addresses.urlOf(file) }),
    });
    const keep = async (asked: Asked): Promise<SentAnswer> =>
      answer(await keepUpload(kb, accountId, received, name, asked));
    if (key === undefined) return send(reply, await keep({}));
    let isFirst = false;
    try {
      // Of the form only name and content count: its boundary is another one at every try.
      const sha256 = hash("sha256", `${ROUTES.upload} ${received.sha256} ${name}`, "hex");
      const work = () => {
        isFirst = true;
        return keep({ request: { key, bodySha256: sha256 } });
      };
      const again = async (noted: KeptAnswer): Promise<SentAnswer> => {
        const kept = readKept(noted);
        if (kept.kind === "answer") return { status: noted.status, body: kept.body };
        if (kept.kind === "file") {
          await placeUpload(kb, kept.file);
          return answer(kept.file);
        }
        throw new Error("an upload was noted as something else");
      };
      return send(reply, await idempotency.once({ accountId, key, sha256 }, work, again));
    } finally {
      // The first one looks after its bytes itself.
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
): Promise<{ readonly received: Received; readonly name: string }> {
  let found: { readonly received: Received; readonly name: string } | undefined;
  try {
    for await (const part of request.parts()) {
      if (part.type !== "file") continue;
      if (part.fieldname !== "file") {
        throw new Refusal(
          "invalid_field",
          `file: expected the file in the part "file", got it in another one.`,
          {
            field: "file",
          },
        );
      }
      // Its type promises a name, but a part of bytes needs none.
      const { filename = "" } = part as { readonly filename?: string };
      found = { received: await receiveUpload(kb, part.file), name: filename };
    }
  } catch (error) {
    if (found !== undefined) await kb.files.discard(found.received.token);
    throw formFailure(error, request);
  }
  if (found !== undefined) return found;
  throw new Refusal(
    "invalid_field",
    "file: expected a multipart form with a file in the part file, got none.",
    {
      field: "file",
    },
  );
}

/** The form parser throws plain errors for a broken form; failures of the disk have a system code. */
function formFailure(error: unknown, { raw }: FastifyRequest): unknown {
  // The client left before its body was whole: whatever failed for that, nothing of ours did.
  if (!(error instanceof Refusal) && raw.destroyed && !raw.complete) {
    return new Refusal("invalid_body", "The upload was broken off by its sender.", { cause: error });
  }
  if (!(error instanceof Error) || error instanceof Refusal || "code" in error) return error;
  return new Refusal("invalid_body", "The body is not a complete multipart form.", { cause: error });
}
