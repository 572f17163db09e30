import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openNearby } from "./nearby.ts";

const nearby = openNearby(fileURLToPath(new URL("../..", import.meta.url)));

describe("the tests near a module", () => {
  it.each([
    ["begin with the one of its name", "src/kb/search/fuse.ts", "test/kb/search/fuse.test.ts"],
    [
      "begin with the one of its plural, in another folder and a long one",
      "src/kb/resources/mail.ts",
      "test/kb/http/mails.test.ts",
    ],
    [
      "begin with the one named like its subject, not with one of another part named like its folder",
      "src/kb/http/routes/file-routes.ts",
      "test/kb/http/files.test.ts",
    ],
    ["begin with the one named like its folder", "src/kb/models/openai.ts", "test/kb/chat/models.test.ts"],
  ])("the tests near a module %s", (_name, source, expected) => {
    expect(nearby.testsOf(source, 1)).toEqual([expected]);
  });

  it("the tests near a module continue with those that use most of its rare words", () => {
    const near = nearby.testsOf("src/kb/http/client-error.ts", 4);
    expect(near).toContain("test/kb/http/raw-requests.test.ts");
    expect(nearby.testsOf("src/kb/index/row-set.ts", 2)).toContain("test/kb/index/words/words.test.ts");
  });

  it("the tests near a module have the words of the suites that they run", () => {
    const near = nearby.testsOf("src/kb/store/sqlite/scopes/document-list.ts", 3);
    expect(near).toContain("test/kb/store/sqlite/contract.test.ts");
  });

  it("the tests near a module include the long ones of the folder that mirrors its own, and of the others only the most alike", () => {
    expect(nearby.testsOf("src/kb/http/routes/chat-routes.ts", 20)).toContain("test/kb/chat/webhook.test.ts");
    const near = nearby.testsOf("src/kb/chat/image-reader.ts", 100);
    expect(near).toContain("test/kb/chat/images.test.ts");
    expect(near).not.toContain("test/kb/http/mails.test.ts");
  });

  it("the tests near a module leave out programs that run as a whole, and tests that do not import it", () => {
    const near = nearby.testsOf("src/kb/search/fuse.ts", 1000);
    expect(near).not.toContain("test/kb/lexical/porter.test.ts");
    expect(near.filter((test) => /^test\/(?:e2e|crash|simulate)\//.test(test))).toEqual([]);
  });
});
