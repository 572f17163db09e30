import type { FastifyInstance } from "fastify";
import { PreviewAnswer, PreviewBody } from "../../../wire/preview.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { previewChunks } from "../../resources/preview.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

/** Adds the preview of chunks (an addition). It does the work of a create, so it needs the same scope. */
export function addPreviewRoutes(server: FastifyInstance, parts: HttpParts, bodyBytesMax: number): void {
  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.preview,
    scope: "write",
    doc: {
      summary: "Splits the beginning of a text into chunks as a create would, and stores nothing.",
      tag: "Resources",
      body: PreviewBody,
      answers: { 200: PreviewAnswer },
    },
    bodyBytesMax,
    handle: async (request, accountId) => {
      const preview = await previewChunks(parts.kb, accountId, readBody(PreviewBody, request.body));
      return answer(200, "Chunks previewed successfully", preview);
    },
  });
}
