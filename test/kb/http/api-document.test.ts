import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { STATUS } from "../../../src/kb/http/operation/status.ts";
import { ROUTES } from "../../../src/wire/routes.ts";

const document = readFileSync(fileURLToPath(new URL("../../../docs/API.md", import.meta.url)), "utf8");

describe("docs/API.md", () => {
  it("lists every code with its status, and no other", () => {
    const listed = [...document.matchAll(/^\| (\d{3}) \| `(\w+)` \|/gm)].map(([, status, code]) => [
      code,
      Number(status),
    ]);
    expect(Object.fromEntries(listed)).toEqual(STATUS);
  });

  it("names every route", () => {
    for (const path of Object.values(ROUTES)) expect(document).toContain(path);
  });
});
