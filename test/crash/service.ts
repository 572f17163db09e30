import { request } from "undici";
import {
  CollectionsAnswer,
  ListAnswer,
  ResourceAnswer,
  type ResourceRecord,
} from "../../src/wire/resource.ts";
import { type Running, startUp, stop, temporaryFolder } from "../e2e/program.ts";

/** The embedded service in a process of its own, whose contents are read without a daemon. */
export interface CrashService {
  readonly url: string;
  readonly key: string;
  readonly keyFile: string;
  readonly stateDir: string;
  /** Live resources of an owner in the `fastest` collection. */
  list(ownerId: string): Promise<ResourceRecord[]>;
  /** Makes a text resource as somebody else would. */
  create(ownerId: string, what: Foreign): Promise<ResourceRecord>;
  /** An uploaded file's bytes. */
  bytesOf(url: string): Promise<Buffer>;
  end(): Promise<void>;
}

/** A resource that is none of ours. */
export interface Foreign {
  readonly title: string;
  readonly description: string;
  readonly content: string;
}

/** Starts `kbsync serve` on a state folder, by default one of its own. */
export async function startService(given?: string): Promise<CrashService> {
  const folder = given === undefined ? temporaryFolder("crash-service") : undefined;
  const stateDir = given ?? folder?.path ?? "";
  const running = await startUp(["serve", "--port", "0"], stateDir);
  return serviceOf(running, async () => {
    await stop(running);
    folder?.remove();
  });
}

/** The same look at the service that some other process runs. */
export async function serviceOf(
  { url, key, stateDir }: Pick<Running, "url" | "key" | "stateDir">,
  end: () => Promise<void>,
): Promise<CrashService> {
  const headers = { pauthkey: key, "content-type": "application/json" };
  const collections = await request(`${url}/api/rag/collections`, { headers });
  const answer = CollectionsAnswer.parse(await collections.body.json());
  const collectionId = answer.data.collections.find(({ details }) => details === "fastest")?._id ?? "";
  return {
    url,
    key,
    keyFile: `${stateDir}/pauthkey`,
    stateDir,
    list: async (ownerId) => {
      const query = new URLSearchParams({ collectionId, ownerId });
      const listed = await request(`${url}/api/rag/resource/by-collection?${query.toString()}`, { headers });
      return ListAnswer.parse(await listed.body.json()).data.resources;
    },
    create: async (ownerId, what) => {
      const created = await request(`${url}/api/rag/resource`, {
        method: "POST",
        headers,
        body: JSON.stringify({ ...what, collection_details: "fastest", owner_id: ownerId }),
      });
      return ResourceAnswer.parse(await created.body.json()).data;
    },
    bytesOf: async (fileUrl) => {
      const file = await request(fileUrl, { headers });
      return Buffer.from(await file.body.arrayBuffer());
    },
    end,
  };
}
