import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { ResourceRecord } from "../../src/wire/resource.ts";
import { temporaryFolder } from "../e2e/program.ts";
import { openFakeService, type FakeOptions, type FakeResource } from "../fakes/knowledge-service.ts";
import type { CrashService } from "./service.ts";

/**
 * A service that speaks the published specification alone, in this process, which shows what it really holds. Its
 * lists, texts and clock are as unkind as the options make them.
 */
export async function startBareService(options: FakeOptions = {}): Promise<CrashService> {
  const fake = await openFakeService(options);
  const folder = temporaryFolder("bare-service");
  const keyFile = join(folder.path, "pauthkey");
  writeFileSync(keyFile, `${fake.key}\n`);
  const recordOf = (resource: FakeResource): ResourceRecord =>
    ResourceRecord.parse({ ...resource, content: resource.content ?? "", metadata: { status: "chunked" } });
  return {
    url: fake.url,
    key: fake.key,
    keyFile,
    stateDir: folder.path,
    list: async (ownerId) => {
      const live = fake.live().filter((each) => each.ownerId === ownerId);
      return Promise.resolve(live.map(recordOf));
    },
    create: async (ownerId, { title, description, content }) => {
      const answer = await fetch(`${fake.url}/api/rag/resource`, {
        method: "POST",
        headers: { pauthkey: fake.key, "content-type": "application/json" },
        body: JSON.stringify({
          title,
          description,
          content,
          collection_details: "fastest",
          owner_id: ownerId,
        }),
      });
      const { data } = (await answer.json()) as { data: { _id: string } };
      const made = fake.resources.get(data._id);
      if (made === undefined) throw new Error("the service made nothing");
      return recordOf(made);
    },
    bytesOf: (url) => Promise.resolve(fake.uploads.get(url)?.content ?? Buffer.alloc(0)),
    end: async () => {
      await fake.close();
      folder.remove();
    },
  };
}
