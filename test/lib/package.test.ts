import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ENTRIES, entryUrl, packagePath } from "../../src/lib/package.ts";

describe("the files of the package", () => {
  it("finds package.json in the package's own folder", () => {
    expect(JSON.parse(readFileSync(packagePath("package.json"), "utf8"))).toMatchObject({ name: "kbsync" });
  });

  it("every entry is a source that exists", () => {
    expect(ENTRIES.filter((name) => !existsSync(entryUrl(name)))).toEqual([]);
  });

  it("only src/lib knows where the program's own modules are, because the build moves all others to other folders", () => {
    const others = globSync("src/**/*.ts", { cwd: packagePath() })
      .filter((file) =>
        /\bnew URL\([^)]*import\.meta\.url/.test(readFileSync(join(packagePath(), file), "utf8")),
      )
      .toSorted();
    expect(others).toEqual([]);
  });
});
