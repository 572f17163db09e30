import { expect, it } from "vitest";
import { openScreen } from "../../../src/cli/terminal/screen.ts";
import { watch } from "../../../src/cli/commands/status.ts";

/** A terminal as far as it matters: which page it shows, whether its cursor is visible, what was written to it. */
function terminal(isTTY: boolean, rows: number | undefined = 10) {
  const pages = { own: "", other: "" };
  let page: keyof typeof pages = "own";
  let hasCursor = true;
  return {
    isTTY,
    columns: 20,
    rows,
    write: (text: string) => void (pages[page] += text),
    bar: () => undefined,
    draw: (text: string) => {
      // oxlint-disable-next-line no-control-regex -- they are what is searched for
      for (const part of text.split(/(\u001b\[\?(?:1049|25)[hl])/)) {
        if (part === "\u001b[?1049h") page = "other";
        else if (part === "\u001b[?1049l") page = "own";
        else if (part === "\u001b[?25l") hasCursor = false;
        else if (part === "\u001b[?25h") hasCursor = true;
        else pages[page] += part;
      }
    },
    state: () => ({ page, hasCursor, ...pages }),
  };
}

it("draws on a page of its own and gives the terminal back with the last status on it", async () => {
  const stdout = terminal(true);
  const stop = new AbortController();
  const read = async (): Promise<number> => {
    stop.abort();
    return 2;
  };
  await watch({ stdout, signal: stop.signal }, 1, read, (now) => `status ${now}\n`, true, 1);
  expect(stdout.state()).toMatchObject({ page: "own", hasCursor: true, own: "status 2\n" });
  expect(stdout.state().other).toContain("status 1");
});

it("gives the terminal back when looking fails", async () => {
  const stdout = terminal(true);
  const { signal } = new AbortController();
  const read = (): Promise<number> => Promise.reject(new Error("gone"));
  await expect(watch({ stdout, signal }, 1, read, String, true, 1)).rejects.toThrow("gone");
  expect(stdout.state()).toMatchObject({ page: "own", hasCursor: true, own: "" });
});

it("writes one status after the other where it may not draw", async () => {
  const stdout = terminal(true);
  const stop = new AbortController();
  let reads = 1;
  const read = async (): Promise<number> => {
    reads += 1;
    if (reads === 3) stop.abort();
    return reads;
  };
  await watch({ stdout, signal: stop.signal }, 1, read, (now) => `status ${now}\n`, false, 1);
  expect(stdout.state()).toMatchObject({ own: "status 1\nstatus 2\nstatus 3\n", other: "" });
});

it("shows what the window has room for, and says that there is more", () => {
  const stdout = terminal(true, 3);
  const screen = openScreen(stdout, (text) => text);
  screen.show("one\ntwo\nthree\nfour\na line that is too long for the window\n");
  const { other } = stdout.state();
  expect(other).toContain("two");
  expect(other).not.toContain("three");
  expect(other).toContain("… 3 more lines: make");
  screen.show("a line that is too long for the window\n");
  expect(stdout.state().other).toContain("a line that is too l\u001b[K");
  screen.show("今日は今日は今日は今日は\n");
  expect(stdout.state().other).toContain("今日は今日は今日は今\u001b[K");
  screen.close();
  screen.close();
  expect(stdout.state()).toMatchObject({ page: "own", own: "" });
});
