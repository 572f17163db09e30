import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { syncSettings } from "../settings.ts";
import { proveAgreement, type ProofSums, type ProvenFile } from "../../../src/sync/operate/proof.ts";
import { openWorld, type World } from "../daemon/harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(async () => {
  await world.end();
});

interface Proof {
  readonly agrees: boolean | undefined;
  readonly files: readonly ProvenFile[];
  readonly sums: ProofSums | undefined;
}
async function prove(listLagMs = 0): Promise<Proof> {
  const files: ProvenFile[] = [];
  let sums: ProofSums | undefined;
  const { url, key } = world.service;
  const agrees = await proveAgreement(
    {
      stateDir: world.stateDir,
      service: { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs },
      sources: [world.source()],
      sync: syncSettings(),
      askWhy: async () => undefined,
      signal: new AbortController().signal,
    },
    { begin: () => undefined, file: (file) => files.push(file), end: (all) => (sums = all) },
  );
  return { agrees, files, sums };
}
const verdicts = ({ files }: Proof): unknown[] =>
  files.map(({ path, state, agrees, unproven }) => [
    path,
    state,
    ...(agrees === null ? [] : [agrees]),
    ...(unproven ? [unproven] : []),
  ]);
const mix = async (): Promise<void> => {
  world.write("a.txt", "text a");
  world.write("b.pdf", PDF);
  world.write("c.url", "[InternetShortcut]\nURL=https://example.com/");
  world.write("empty.txt", "");
  await world.sync();
};

describe("the proof", () => {
  it("proves by hash that every file, read now, agrees with ledger and service", async () => {
    await mix();
    const before = world.service.requests.length;
    const proof = await prove();
    expect(proof.agrees).toBe(true);
    expect(verdicts(proof)).toEqual([
      ["a.txt", "searchable", true],
      ["b.pdf", "searchable", true],
      ["c.url", "searchable", true],
      ["empty.txt", "skipped"],
    ]);
    for (const file of proof.files.slice(0, 3)) {
      expect(file.disk).toBe(file.ledger);
      expect(file.service).toBe(file.path === "b.pdf" ? file.disk : null);
      expect(file.disk).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(proof.sums).toMatchObject({
      files: 3,
      searchable: 3,
      agree: 3,
      skipped: 1,
      differ: 0,
      unowned: 0,
    });
    const asked = world.service.requests.slice(before).map(({ operation }) => operation);
    expect(asked).toEqual(["list", "read", "download"]);
  });

  it("finds a text, a title or an upload that others changed", async () => {
    await mix();
    const [text, upload] = world.service.live();
    if (text === undefined || upload?.url === undefined) throw new Error("nothing was made");
    text.content = "altered";
    const file = world.service.uploads.get(upload.url);
    if (file === undefined) throw new Error("nothing was uploaded");
    file.content = Buffer.from(PDF).fill("x", 10);
    const proof = await prove();
    expect(proof.agrees).toBe(false);
    expect(verdicts(proof).slice(0, 2)).toEqual([
      ["a.txt", "searchable", false],
      ["b.pdf", "searchable", false],
    ]);
  });

  it("finds what is missing at the service, and what is not sent yet", async () => {
    await mix();
    for (const resource of world.service.live()) if (resource.title === "a.txt") resource.isDeleted = true;
    world.write("b.pdf", Buffer.concat([PDF, Buffer.from("more")]));
    world.write("new.txt", "new");
    rmSync(join(world.root, "c.url"));
    const proof = await prove();
    expect(proof.agrees).toBe(false);
    expect(verdicts(proof)).toEqual([
      ["a.txt", "searchable", false],
      ["b.pdf", "waiting"],
      ["empty.txt", "skipped"],
      ["new.txt", "waiting"],
      ["c.url", "waiting"],
    ]);
    expect(proof.files[0]).toMatchObject({ reason: "the service does not have it" });
  });

  it("the proof does not judge recent changes by a list that may lag", async () => {
    await mix();
    for (const resource of world.service.live()) if (resource.title === "a.txt") resource.isDeleted = true;
    const proof = await prove(60_000);
    expect(proof.agrees).toBe(false);
    expect(proof.files[0]).toMatchObject({
      path: "a.txt",
      state: "searchable",
      agrees: null,
      unproven: "too_new",
    });
    expect(proof.sums).toMatchObject({ agree: 2, waiting: 0, differ: 0, unproven: { too_new: 1 } });
  });

  it("reports an upload that the service does not return as not fetched", async () => {
    await mix();
    world.service.uploads.clear();
    const proof = await prove();
    expect(proof.agrees).toBe(true);
    expect(verdicts(proof)[1]).toEqual(["b.pdf", "searchable", "not_fetched"]);
  });

  it("runs while a daemon runs, and changes nothing", async () => {
    await mix();
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await daemon.whenIdle();
    expect((await prove()).agrees).toBe(true);
    stop.abort();
    await ended;
  });

  it("proves nothing where nothing was synced", async () => {
    expect((await prove()).agrees).toBeUndefined();
  });

  it("the proof ends when the service does not answer", async () => {
    await mix();
    world.service.fault = () => ({
      kind: "answer",
      status: 401,
      body: '{"success":false,"message":"no key"}',
    });
    await expect(prove()).rejects.toMatchObject({ code: "key_refused" });
  });
});
