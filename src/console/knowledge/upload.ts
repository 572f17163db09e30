import { CONSOLE_HEADER, IDEMPOTENCY_HEADER, REQUEST_ID_HEADER, ROUTES } from "../../wire/routes.ts";
import { UPLOAD_BYTES_MAX } from "../../wire/constants.ts";
import { persist, refusalOf, RequestError } from "../client/api.ts";
import { bytes } from "../view/format.ts";

/**
 * Uploads a file and returns its address. Notifies `onProgress` of the part that is sent, from 0 to 1. Safe to repeat with the
 * same `key`. Throws `RequestError`.
 */
export async function uploadFile(
  file: File,
  key: string,
  onProgress: (part: number) => void,
): Promise<string> {
  if (file.size > UPLOAD_BYTES_MAX) {
    throw new RequestError(
      `The file has ${bytes(file.size)}, and a document may have ${bytes(UPLOAD_BYTES_MAX)} at most.`,
      { code: "file_too_large" },
    );
  }
  if (file.size === 0) throw new RequestError("The file is empty.", { code: "empty_file" });
  return persist(() => uploadOnce(file, key, onProgress), true);
}

/** By XMLHttpRequest, because fetch says nothing about the progress of an upload. */
function uploadOnce(file: File, key: string, onProgress: (part: number) => void): Promise<string> {
  const form = new FormData();
  form.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", ROUTES.upload);
  request.responseType = "json";
  request.setRequestHeader(CONSOLE_HEADER, "1");
  request.setRequestHeader(IDEMPOTENCY_HEADER, key);
  return new Promise((resolve, reject) => {
    request.upload.addEventListener("progress", ({ loaded, total }) =>
      onProgress(loaded / Math.max(1, total)),
    );
    request.addEventListener("error", () => reject(new RequestError("The service does not answer.")));
    request.addEventListener("load", () => {
      const { status } = request;
      const answer: unknown = request.response;
      if (status === 200) resolve((answer as { readonly file_url: string }).file_url);
      else {
        const requestId = request.getResponseHeader(REQUEST_ID_HEADER) ?? undefined;
        reject(refusalOf(answer, status, requestId, request.getResponseHeader("retry-after")));
      }
    });
    request.send(form);
  });
}
