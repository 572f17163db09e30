import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openTypeCheck } from "./type-check.ts";

it("refuses a changed text that does not compile, and takes the same file unchanged afterwards", () => {
  const root = mkdtempSync(join(tmpdir(), "kbsync-types-"));
  const text = 'export const kind: "gone" | "kept" = "gone";\n';
  writeFileSync(join(root, "tsconfig.json"), '{ "compilerOptions": { "strict": true, "types": [] } }');
  writeFileSync(join(root, "kind.ts"), text);
  writeFileSync(
    join(root, "use.ts"),
    'import { kind } from "./kind.ts";\nexport const used: "gone" = kind;\n',
  );
  const types = openTypeCheck(root);
  try {
    expect(types.compiles("kind.ts", text.replace('= "gone"', '= ""'))).toBe(false);
    expect(types.compiles("kind.ts", text.replace('= "gone"', '= "kept"'))).toBe(true);
    expect(types.compiles("kind.ts", "export const = ;")).toBe(false);
    expect(types.compiles("kind.ts", text)).toBe(true);
  } finally {
    types.close();
  }
});
