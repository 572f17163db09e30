import { codeOf, messageOf } from "../../../lib/failure.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER, ROUTES } from "../../../wire/routes.ts";
import { UploadAnswer } from "../../../wire/upload.ts";
import { readAnswer, type Reply } from "./answer.ts";
import { download, fileAddress, type Sink } from "./download.ts";
import { TornFile, uploadBody, type UploadSource } from "./multipart.ts";
import type { ContentKind } from "./request-limit.ts";
import { NOT_SENT, type Hosts, type Transport, type TransportOptions } from "./transport.ts";

/** Opens these requests over a transport. */
export function fileRequests(
  { attempt, send, auth }: Transport,
  hosts: Hosts,
  { address, now }: Pick<TransportOptions, "address" | "now">,
) {
  return {
    /** Fetches an uploaded file of at most `bytesMax` into a sink. */
    download: (url: string, bytesMax: number, sink: Sink, signal: AbortSignal): Promise<Reply<undefined>> =>
      attempt("download", signal, async () => {
        const {
          href,
          origin,
          pathname,
          search: query,
        } = fileAddress(url, address.resourcesUrl ?? address.apiUrl, address.filesAt);
        const isOurs = hosts.isOurs(href);
        const headers: Record<string, string> = isOurs ? { [KEY_HEADER]: address.pauthkey } : {};
        const request = { path: `${pathname}${query}`, headers, signal };
        try {
          return await download(hosts.at(origin).pool, request, bytesMax, sink, now());
        } catch (error) {
          // Another host that does not answer does not make the service unreachable.
          if (isOurs || !NOT_SENT.has(codeOf(error) ?? "")) throw error;
          return { kind: "refused", code: codeOf(error) ?? "", message: messageOf(error) };
        }
      }),

    /** `torn`: the file changed, or became unreadable, while it was sent. */
    upload: async (
      file: UploadSource,
      key: string,
      signal: AbortSignal,
      kind: ContentKind = "content",
    ): Promise<Reply<string> | { readonly kind: "torn" }> => {
      try {
        return await attempt(
          "upload",
          signal,
          async () => {
            const form = uploadBody(file);
            const headers = {
              ...auth,
              [IDEMPOTENCY_HEADER]: key,
              "content-type": form.contentType,
              "content-length": String(form.contentLength),
            };
            const path = ROUTES.upload;
            // The pool accepts any iterable as a body; its types allow streams only.
            const body = form.chunks as never;
            const answer = await send("api", { method: "POST", path, headers, body }, signal);
            const reply = readAnswer(answer, UploadAnswer, "address");
            return reply.kind === "done" ? { kind: "done" as const, value: reply.value.file_url } : reply;
          },
          { kind },
        );
      } catch (error) {
        if (error instanceof TornFile) return { kind: "torn" };
        throw error;
      }
    },
  };
}
