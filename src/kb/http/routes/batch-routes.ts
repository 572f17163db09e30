import type { FastifyInstance } from "fastify";
import { BatchAnswer, BatchBody, BatchesAnswer, BatchReadAnswer, type Batch } from "../../../wire/batch.ts";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../../wire/routes.ts";
import { acceptedBatch, createBatch, listBatches, readBatch, stopBatch } from "../../batches/batches.ts";
import { readStoredAnswer } from "../operation/idempotency.ts";
import { addOperation, answer, idOf } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { IDEMPOTENCY_DOC } from "../operation/route-table.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Resources";
/** The most ids of a batch, with some room. */
const BATCH_BODY_BYTES_MAX = 256 * 1024;

/** Adds work on many documents (additions): start it, follow it, stop it. */
export function addBatchRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { kb } = parts;
  const one = `${ROUTES.batches}/:id`;

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.batches,
    scope: "write",
    doc: {
      summary: "Deletes many documents, or takes many failed ones in again, after the answer.",
      tag: TAG,
      body: BatchBody,
      headers: { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_DOC },
      answers: { 202: BatchAnswer },
    },
    bodyBytesMax: BATCH_BODY_BYTES_MAX,
    replay: async (_accountId, noted) => {
      const note = readStoredAnswer(noted);
      if (note.kind !== "batch") throw new Error("a batch was noted as something else");
      return accepted(acceptedBatch(note.batch));
    },
    handle: async (request, accountId, context) => {
      const batch = await createBatch(kb, accountId, readBody(BatchBody, request.body), context);
      parts.wakeBatches();
      return accepted(batch);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.batches,
    scope: "write",
    doc: { summary: "Lists the batches of the account.", tag: TAG, answers: { 200: BatchesAnswer } },
    handle: async (_request, accountId) =>
      answer(200, "Batches fetched successfully", await listBatches(kb, accountId)),
  });

  addOperation(server, parts, {
    method: "GET",
    url: one,
    scope: "write",
    doc: {
      summary: "Returns the progress of a batch, and why documents failed.",
      tag: TAG,
      answers: { 200: BatchReadAnswer },
    },
    handle: async (request, accountId) =>
      answer(200, "Batch fetched successfully", await readBatch(kb, accountId, idOf(request))),
  });

  addOperation(server, parts, {
    method: "POST",
    url: `${one}/stop`,
    scope: "write",
    doc: { summary: "Stops a batch. What it did stays done.", tag: TAG, answers: { 200: BatchAnswer } },
    handle: async (request, accountId) =>
      answer(200, "Batch stopped", await stopBatch(kb, accountId, idOf(request))),
  });
}

function accepted(batch: Batch) {
  return {
    ...answer(202, "Batch accepted", batch),
    headers: { location: `${ROUTES.batches}/${batch._id}` },
  };
}
