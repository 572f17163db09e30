import { expect, it } from "vitest";
import { lazyModule } from "../../src/lib/lazy-module.ts";

it("loads a package once, on first use", () => {
  let loads = 0;
  const yaml = lazyModule((load) => {
    loads += 1;
    return load("yaml") as typeof import("yaml");
  });
  expect(loads).toBe(0);
  expect([yaml().parse("a: 1"), yaml().parse("- 2")]).toEqual([{ a: 1 }, [2]]);
  expect(loads).toBe(1);
});

it("loads a package that exports only to `import`", () => {
  const plist = lazyModule((load) => load("plist") as typeof import("plist"));
  expect(plist().parse("<plist><string>x</string></plist>")).toBe("x");
});

it("names a package that is missing", () => {
  const missing = lazyModule((load) => load("no-such-package-of-ours"));
  expect(missing).toThrow("no-such-package-of-ours");
});
