import type { FastifyInstance, FastifyRequest } from "fastify";
import { ROUTES } from "../../wire/routes.ts";
import { notYet } from "../resources/refusal.ts";
import { requireKey, routeConfig } from "./operation.ts";
import type { HttpParts } from "./operation.ts";

/** Operations 7 and 8, which are not there yet: they answer so instead of an unknown route. */
export function addLaterRoutes(server: FastifyInstance, parts: HttpParts): void {
  const checkKey = requireKey(parts.keyring, "chat");
  const addLater = (url: string, what: string, instead: string): void => {
    const refuse = (): never => {
      throw notYet(what, instead);
    };
    // Already before the body is read, so that its type and size do not matter.
    const onRequest = async (request: FastifyRequest): Promise<never> => {
      await checkKey(request);
      return refuse();
    };
    const doc = { summary: `${what}: answers 501 in this version.`, tag: "Chat", answers: {} };
    server.post(url, { onRequest, config: routeConfig("chat", doc) }, refuse);
  };
  addLater(
    ROUTES.chat,
    "Chat completion",
    `Search with POST ${ROUTES.query} and hand the passages to your own model.`,
  );
  addLater(
    ROUTES.chatUpload,
    "Uploading an image for chat",
    `Upload files for resources with POST ${ROUTES.upload}.`,
  );
}
