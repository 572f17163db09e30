import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { z } from "zod";
import { kbsync, list, type Running, startUp, stop, temporaryFolder, until } from "../e2e/program.ts";
import { openChance, wholeNumberOf } from "./chance.ts";

const SEED = wholeNumberOf("KBSYNC_CRASH_SEED", 1);
const KILLS = 3 * wholeNumberOf("KBSYNC_CRASH_ROUNDS", 2);
/** Files of each folder. */
const FILES = 60;

const temporary = temporaryFolder("nested");
const root = join(temporary.path, "docs");
const state = join(temporary.path, "state");
const config = join(temporary.path, "kbsync.config.json");
afterAll(() => temporary.remove());

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
/** An outer source in a Git work tree, and at times an inner one of another owner. */
function configure(isNested: boolean): void {
  const outer = { path: root, ownerId: "outer" };
  const archive = { path: join(root, "archive"), ownerId: "archive", deletes: "never" };
  const team = { path: join(root, "team"), ownerId: "inner" };
  const sources = [outer, archive, ...(isNested ? [team] : [])];
  writeFileSync(config, JSON.stringify({ service: { port: 0 }, stateDir: state, sources }));
}
const Synced = z.object({ sources: z.array(z.object({ ownerId: z.string(), collectionId: z.string() })) });

/** The texts at the service by owner. */
async function textsOf(running: Running, owner: string): Promise<string[]> {
  const { stdout } = await kbsync(["status", "--json", "--config", config]);
  const collectionId = Synced.parse(JSON.parse(stdout)).sources[0]?.collectionId ?? "";
  return (await list(running, collectionId, owner)).map(({ content }) => content ?? "").toSorted();
}

it(
  "kill -9 while sources are nested otherwise leaves one document a file, with its owner",
  { timeout: 300_000 },
  async () => {
    const chance = openChance(SEED);
    const texts = (folder: string): string[] =>
      Array.from({ length: FILES }, (_, n) => `text ${n} of ${folder}`);
    for (const folder of ["", "team/", "archive/"])
      for (const [n, text] of texts(folder).entries()) write(`${folder}${n}.md`, text);
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".gitignore", "secret/\n");
    write("secret/a.md", "a secret");
    write("node_modules/a/README.md", "an installed package");
    configure(false);
    expect(await kbsync(["sync", "--config", config])).toMatchObject({ code: 0 });
    for (let n = 0; n < FILES / 2; n += 1) rmSync(join(root, `archive/${n}.md`));
    for (let kill = 0; kill < KILLS; kill += 1) {
      configure(kill % 2 === 0);
      const running = await startUp(["up", "--config", config], state);
      await sleep(chance.below(1000));
      await stop(running, "SIGKILL");
    }
    for (const isNested of [true, false]) {
      configure(isNested);
      const running = await startUp(["up", "--config", config], state);
      const [outer, inner, archive] = [texts(""), texts("team/"), texts("archive/")];
      const expected = [isNested ? outer : [...outer, ...inner], isNested ? inner : [], archive];
      const found = async (): Promise<string[][]> =>
        Promise.all(["outer", "inner", "archive"].map((owner) => textsOf(running, owner)));
      const sorted = JSON.stringify(expected.map((each) => each.toSorted()));
      await until("agreement", async () => JSON.stringify(await found()) === sorted).catch(() => undefined);
      expect(await found()).toEqual(JSON.parse(sorted));
      expect(await stop(running)).toBe(0);
    }
  },
);
