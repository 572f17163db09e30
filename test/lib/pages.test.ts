import { expect, it } from "vitest";
import { pagesOf } from "../../src/lib/pages.ts";

/** Reads a list whose pages are named by their cursors, `first` without one. */
async function pagesRead(
  followers: Readonly<Record<string, string | null>>,
  start?: string,
): Promise<string[]> {
  const pages: string[] = [];
  const options = {
    what: "list of things",
    read: async (cursor: string | undefined) => cursor ?? "first",
    next: (page: string) => followers[page],
    start,
  };
  for await (const page of pagesOf(options)) pages.push(page);
  return pages;
}

it.each([null, ""])(
  "reads the pages of a list from the first, or from a cursor on, to the cursor %o",
  async (last) => {
    const followers = { first: "a", a: "b", b: last };
    expect(await pagesRead(followers)).toEqual(["first", "a", "b"]);
    expect(await pagesRead(followers, "a")).toEqual(["a", "b"]);
  },
);

it.each([{ a: "a" }, { a: "b", b: "a" }, { a: "b", b: "c", c: "b" }])(
  "ends a list that repeats a cursor: %o",
  async (followers) => {
    await expect(pagesRead({ first: "a", ...followers })).rejects.toMatchObject({
      message: "the service's list of things has no end",
      code: "service_refused",
    });
    await expect(pagesRead(followers, "a")).rejects.toMatchObject({ code: "service_refused" });
  },
);
