import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { FileStorage } from "../../../../../src/kb/uploads/open-files.ts";
import { createBody, fileForm } from "../../../service/running.ts";
import { stubCredentials } from "../../../uploads/bucket-fixture.ts";
import { BUCKET, openS3Server, type S3Server } from "../../../uploads/s3-server.ts";
import { isSkipped } from "../databases.ts";
import { openServices, type Services } from "./services.ts";

const UPLOAD = "/image/processing/upload";
const RESOURCE = "/api/rag/resource";

describe.skipIf(isSkipped())("two processes with one place for uploaded files", () => {
  let server: S3Server;
  let folder: string;
  let services: Services;
  beforeEach(async () => {
    stubCredentials();
    server = await openS3Server();
    folder = await mkdtemp(join(tmpdir(), "kbsync-shared-"));
  });
  afterEach(async () => {
    await services.close();
    await server.close();
    await rm(folder, { recursive: true });
    vi.unstubAllEnvs();
  });

  const places: Record<string, () => FileStorage> = {
    folder: () => ({ kind: "folder", path: folder }),
    bucket: () => ({ kind: "bucket", bucket: BUCKET, prefix: "", endpoint: server.endpoint }),
  };

  it.each(Object.keys(places))(
    "two processes read, use and repeat each other's uploads in a %s",
    async (kind) => {
      const files = places[kind]?.();
      services = await openServices(2, { files, resourcesUrl: "https://kb.example" });
      const upload = (at: number, text: string, key: string) =>
        services.send(at, "POST", UPLOAD, { body: fileForm(text), headers: { "idempotency-key": key } });
      const first = await upload(0, "tides", "k");
      const url: string = first.json.file_url;
      expect((await services.send(1, "GET", new URL(url).pathname)).text).toBe("tides");
      const body = createBody({ content: undefined, url });
      const made = await services.send(1, "POST", RESOURCE, { body });
      const path = `${RESOURCE}/${made.json.data._id}`;
      expect((await services.send(0, "GET", path)).json.data.content).toBe("tides");
      expect((await upload(1, "tides", "k")).json.file_url).toBe(url);
      // The same upload at both at once is one file, and nothing of the other attempt is left.
      const both = await Promise.all([0, 1].map((at) => upload(at, "harbours", "l")));
      const answered = both.filter(({ status }) => status === 200).map(({ json }) => json.file_url);
      expect(new Set(answered).size).toBe(1);
      const again = await upload(1, "harbours", "l");
      expect(again.json.file_url).toBe(answered[0]);
      expect((await services.send(1, "GET", new URL(again.json.file_url).pathname)).text).toBe("harbours");
      const left =
        kind === "folder"
          ? await readdir(join(folder, "incoming"))
          : [...server.objects.keys()].filter((key) => key.startsWith("incoming/"));
      expect(left).toEqual([]);
    },
  );
});
