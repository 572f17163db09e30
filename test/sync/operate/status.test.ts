import { appendFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { SourceStatus } from "../../../src/wire/daemon-status.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { openFollowed } from "../scenarios/followed.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(() => world.end());

const fill = (from: number, to: number): void => {
  for (let index = from; index < to; index += 1) world.write(`${index}.txt`, `text ${index}`);
};
const isAgreement = ({ compared, files, searchable }: SourceStatus): boolean =>
  compared && files > 0 && searchable === files;

it("claims agreement for no folder while files wait, whenever a first adoption is killed", async () => {
  fill(0, 8);
  await world.sync();
  for (const name of readdirSync(world.stateDir).filter((file) => file.startsWith("ledger.db")))
    rmSync(join(world.stateDir, name));
  fill(8, 98);
  // What another process reads at each effect is what a kill there would leave.
  const left: SourceStatus[] = [];
  await world.sync({ step: () => left.push(...(readStatus(world.stateDir, 0)?.sources ?? [])) });
  expect(left.filter(isAgreement).filter(({ files }) => files !== 98)).toEqual([]);
  expect(readStatus(world.stateDir, 0)?.sources).toMatchObject([
    { compared: true, files: 98, searchable: 98 },
  ]);
});

it("claims agreement for no folder when the next daemon ends before it has scanned it", async () => {
  fill(0, 3);
  await world.sync();
  expect(readStatus(world.stateDir, 0)?.sources).toMatchObject([{ compared: true, searchable: 3 }]);
  fill(3, 6);
  world.service.fault = () => ({ kind: "answer", status: 503, body: "{}" });
  const daemon = world.daemon();
  const stopping = new AbortController();
  const ended = daemon.syncOnce({ signal: stopping.signal }).catch(() => undefined);
  expect(daemon.status().sources).toMatchObject([{ compared: false, searchable: 3 }]);
  stopping.abort();
  await ended;
  await daemon.close();
  const [source] = readStatus(world.stateDir, 0)?.sources ?? [];
  expect(source).toBeDefined();
  expect(source !== undefined && isAgreement(source)).toBe(false);
});

it("counts a growing file as waiting while its newest version is held back", async () => {
  const { world: own, daemon, at, agrees, end } = await openFollowed({ "a.txt": "a", "log.txt": "one" });
  const ofSource = (): SourceStatus | undefined => daemon.status().sources[0];
  // The fifth growth in quick succession is held back for some seconds.
  for (let grown = 0; grown < 8 && ofSource()?.waiting === 0; grown += 1) {
    const before = own.service.requests.length;
    appendFileSync(at("log.txt"), " and more");
    await until(() => own.service.requests.length > before || ofSource()?.waiting === 1);
    if (ofSource()?.waiting === 0) await daemon.whenIdle();
  }
  expect(ofSource()).toMatchObject({ files: 2, searchable: 1, waiting: 1 });
  // Another process reads the same a moment later.
  await until(() => readStatus(own.stateDir, 0)?.sources[0]?.waiting === 1);
  await agrees();
  expect(ofSource()).toMatchObject({ files: 2, searchable: 2, waiting: 0 });
  await end();
});
