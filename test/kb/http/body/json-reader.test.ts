import { afterAll, expect, it } from "vitest";
import { openJsonReader } from "../../../../src/kb/http/body/json-parser.ts";

const reader = openJsonReader();
afterAll(() => reader.close());

/** More than is parsed in place, in memory of its own. */
const body = (): Buffer => Buffer.from(JSON.stringify({ content: "a".repeat(2_000_000) }));

it("parses a large body of an account before most of those that another one sent first", async () => {
  const parsed: string[] = [];
  const parse = async (account: string): Promise<void> => {
    expect(await reader.parse(body(), account)).toHaveProperty("content.length", 2_000_000);
    parsed.push(account);
  };
  await Promise.all([...Array.from({ length: 20 }, () => parse("busy")), parse("other")]);
  expect(parsed.indexOf("other")).toBeLessThan(4);
});

it("refuses a broken large body as a short one", async () => {
  const broken = Buffer.concat([body(), Buffer.from("}")]);
  await expect(reader.parseHashed(broken, "a")).rejects.toMatchObject({ code: "invalid_body" });
});
