import { expect, it } from "vitest";
import { keyLines } from "../../../src/cli/output/key-lines.ts";
import type { KeyRecordAnswer } from "../../../src/wire/key.ts";

const key = {
  _id: "6b0a24414f2dc4e2e6733a11",
  hint: "kb__OIdV",
  state: "valid",
  scopes: ["read", "write", "chat", "admin"],
  name: "state folder",
  expiresAt: null,
  revokedAt: null,
} as unknown as KeyRecordAnswer; // What is not shown is missing.
const at = "2027-01-31T12:00:00.000Z";

it.each([
  ["never ends", {}, "valid, never expires"],
  ["ends", { expiresAt: at }, `valid until ${at}`],
  ["has ended", { state: "expired", expiresAt: at } as const, `expired since ${at}`],
  ["was revoked", { state: "revoked", revokedAt: at, expiresAt: null } as const, `revoked since ${at}`],
])("a key that %s takes two lines that fit 80 columns", (_name, own, state) => {
  const lines = keyLines([{ ...key, ...own }]).split("\n");
  expect(lines).toEqual([
    "6b0a24414f2dc4e2e6733a11  state folder",
    `  ${state}; kb__OIdV…; read, write, chat, admin`,
    "",
  ]);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});
