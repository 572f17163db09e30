import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, matchesGlob, normalize } from "node:path";
import { LONG_TESTS } from "../../vitest.config.ts";

/** Suites that start real programs or take minutes are no tests of one module. */
const FAR = [
  "test/{e2e,crash,package,systemd,simulate,mutate}/**",
  "test/{sync/daemon,kb/store/sqlite}/crash.test.ts",
  "test/sync/scenarios/**",
];

/** Ends of names that say which part of a subject a module has: the tests of `upload-routes.ts` speak of uploads. */
const ROLE = /-(?:routes|reads|writes|child|worker)$/;

/** Files of tests that several implementations run: `contract-words.ts`, `queue-contract.ts`. */
const SUITE = /^test\/.*\b(?:contract-[\w-]+|[\w-]+-contract)\.ts$/;

/** Long tests of other folders of the same part that run nevertheless: some promises are kept by a long test alone. */
const FAR_LONG_MAX = 2;
/** Folders that the tests of one part have in common: `test/kb`. */
const PART_FOLDERS = 2;
/** Up to this rank a test mirrors a module, by its own name or its folder's. */
const MIRROR_RANK = 2;

/** Which tests run a module, nearest first. */
export interface Nearby {
  /**
   * Test files of a source file, both relative to the repository: those that mirror it (its name, then its folder's), then
   * those that import it, of the same part of the tree first, and of these the ones that are most alike in their words. Long
   * tests where they mirror it or its folder, or are the most alike of the same part. At most `limit`.
   */
  testsOf(source: string, limit: number): readonly string[];
}

/** Whether a test belongs to the long ones. */
export function isLong(test: string): boolean {
  return LONG_TESTS.some((glob) => matchesGlob(test, glob));
}

/** Reads the imports of all tests and sources below a repository. */
export function openNearby(root: string): Nearby {
  const imports = new Map<string, readonly string[]>();
  const importsOf = (file: string): readonly string[] => {
    const known = imports.get(file);
    if (known !== undefined) return known;
    const read = importedBy(root, file);
    imports.set(file, read);
    return read;
  };
  const names = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  const tests = names
    .map((name) => join("test", name))
    .filter((name) => name.endsWith(".test.ts") && !FAR.some((glob) => matchesGlob(name, glob)))
    .toSorted();

  /** Steps of imports from a test to every module that it runs. */
  const stepsFrom = (test: string): ReadonlyMap<string, number> => {
    const steps = new Map([[test, 0]]);
    for (const [file, count] of steps)
      for (const next of importsOf(file)) if (!steps.has(next)) steps.set(next, count + 1);
    return steps;
  };
  const reach = new Map(tests.map((test) => [test, stepsFrom(test)]));
  /** A test with the suites that it runs: `contract.test.ts` of a store only names the implementation. */
  const textOf = (test: string): string =>
    [...(reach.get(test)?.keys() ?? [])]
      .filter((file) => file === test || SUITE.test(file))
      .map((file) => readFileSync(join(root, file), "utf8"))
      .join("\n");
  const likeness = openLikeness(tests.map((test) => [test, textOf(test)]));

  return {
    testsOf: (source, limit) => {
      const mirror = source.replace(/^src\//, "test/").replace(/\.ts$/, "");
      const rankOf = (test: string, steps: number): number => {
        if (test === `${mirror}.test.ts`) return 0;
        // `builtin-images.test.ts` is about a side of `builtin.ts`.
        const isPart = test.startsWith(`${mirror}/`) || test.startsWith(`${mirror}-`);
        // `http/mails.test.ts` sends the requests that `resources/mail.ts` answers; `mcp/http.test.ts` is about another part.
        const isSamePart = sharedFolders(test, mirror) >= PART_FOLDERS;
        if (isPart || (isSamePart && isNamesake(test, mirror.replace(ROLE, "")))) return 1;
        return isSamePart && isNamesake(test, dirname(mirror)) ? MIRROR_RANK : MIRROR_RANK + steps;
      };
      const alike = likeness(readFileSync(join(root, source), "utf8"));
      const ranked = tests.flatMap((test) => {
        const steps = reach.get(test)?.get(source);
        if (steps === undefined) return [];
        const isSamePart = sharedFolders(test, mirror) >= PART_FOLDERS;
        return [{ test, rank: rankOf(test, steps), isSamePart, alike: alike(test) }];
      });
      /** Long tests that neither mirror the module nor stand in its folder, the most alike first. */
      const farLong = ranked
        .filter(({ test, rank }) => isLong(test) && rank > MIRROR_RANK && dirname(test) !== dirname(mirror))
        .toSorted((a, b) => b.alike - a.alike);
      const leftOut = new Set([
        ...farLong.filter(({ isSamePart }) => !isSamePart),
        ...farLong.filter(({ isSamePart }) => isSamePart).slice(FAR_LONG_MAX),
      ]);
      const isMirror = (each: { readonly rank: number }): number => (each.rank <= MIRROR_RANK ? 0 : 1);
      return ranked
        .filter((each) => !leftOut.has(each))
        .toSorted(
          (a, b) =>
            isMirror(a) - isMirror(b) ||
            Number(b.isSamePart) - Number(a.isSamePart) ||
            (isMirror(a) === 0 ? a.rank - b.rank : 0) ||
            b.alike - a.alike ||
            a.test.localeCompare(b.test),
        )
        .slice(0, limit)
        .map(({ test }) => test);
    },
  };
}

/**
 * How alike tests are to a module by their words: names, codes and headers that few tests have count most. Of dozens that run
 * the whole service or daemon, these are the ones about it.
 */
function openLikeness(
  tests: readonly (readonly [string, string])[],
): (source: string) => (test: string) => number {
  const words = new Map(tests.map(([test, text]) => [test, wordsOf(text)]));
  const having = new Map<string, number>();
  for (const each of words.values()) for (const word of each) having.set(word, (having.get(word) ?? 0) + 1);
  return (source) => {
    const own = wordsOf(source);
    return (test) => {
      const its = words.get(test) ?? new Set();
      let sum = 0;
      for (const word of own) if (its.has(word)) sum += Math.log(tests.length / (having.get(word) ?? 1));
      // A long test has some of everything.
      return sum / Math.sqrt(its.size + 1);
    };
  };
}

function wordsOf(text: string): Set<string> {
  return new Set(text.match(/[A-Za-z_][\w-]{3,}/g));
}

/** Whether a test is named like a module or a folder, in the singular or the plural. */
function isNamesake(test: string, mirror: string): boolean {
  return basename(test, ".test.ts").replace(/s$/, "") === basename(mirror).replace(/s$/, "");
}

/** How many folders two paths begin with in common. */
function sharedFolders(one: string, other: string): number {
  const [a, b] = [dirname(one).split("/"), dirname(other).split("/")];
  const differ = a.findIndex((name, at) => name !== b[at]);
  return differ === -1 ? a.length : differ;
}

/** Files of the repository that a module imports, types alone left out; workers and processes count by their name. */
function importedBy(root: string, file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const named = [
    ...text.matchAll(/^(?:import|export)\s+(?!type\b)[^"';]*?["'](\.[^"']+)["']/gm),
    ...text.matchAll(/\bimport\(\s*["'](\.[^"']+)["']/g),
    ...text.matchAll(/new URL\(\s*["'](\.[^"']+\.ts)["']/g),
  ].map((match) => match[1] ?? "");
  // Some are named where they are started, which is not where their address is made.
  const workers = [...text.matchAll(/["']([a-z-]+-worker)["']/g)].map((match) => `${match[1]}.ts`);
  const entries = [...text.matchAll(/\bentryUrl\(["']([^"']+)["']/g)].map((match) => `src/${match[1]}.ts`);
  return [...[...named, ...workers].map((path) => join(dirname(file), path)), ...entries]
    .map((path) => normalize(path))
    .filter((path) => path.endsWith(".ts") && existsSync(join(root, path)));
}
