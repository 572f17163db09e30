/**
 * What the console costs a browser: the bytes of its first view and of all its pages, and the time from the address to the first
 * view on loopback, signed in. The limit to compare with is the same page without scripts: the browser fetches the same bytes of
 * HTML and style, and shows one line.
 *
 *     node bench/console.ts
 *
 * Needs the built program (`npm run build`) and chromium; ten rounds, turn about: half a minute.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { openRunning } from "../test/kb/service/running.ts";
import { builtConsole, openBrowser, signIn } from "../test/console/browser/browser.ts";
import { repositoryRoot } from "../test/e2e/program.ts";
import { median, printTable } from "./report.ts";

const ROUNDS = 10;

const assets = join(repositoryRoot, "dist/console/assets");
const packed = readdirSync(assets)
  .filter((name) => name.endsWith(".gz"))
  .map((name) => ({ name, bytes: statSync(join(assets, name)).size }));
const first = readFileSync(join(repositoryRoot, "dist/console/index.html"), "utf8");
/** Whether the page names a script, so that the browser loads it first. */
const isFirst = (name: string): boolean => name.endsWith(".js.gz") && first.includes(name.slice(0, -3));
const bytesOf = (test: (name: string) => boolean): number =>
  packed.filter(({ name }) => test(name)).reduce((sum, { bytes }) => sum + bytes, 0);
const kB = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;

const running = await openRunning({ consoleFiles: builtConsole() });
const plain = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "text/html" });
  response.end(`<style>${"a{}".repeat(1300)}</style><h1>Overview</h1>`);
});
await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
const plainUrl = `http://127.0.0.1:${(plain.address() as AddressInfo).port}`;
const browser = await openBrowser();
const times: { readonly console: number[]; readonly plain: number[] } = { console: [], plain: [] };
try {
  const key = await running.issueKey("local", ["admin"]);
  for (let round = 0; round < ROUNDS; round++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const shown = async (url: string): Promise<number> => {
      const startMs = performance.now();
      await page.goto(url, { waitUntil: "commit" });
      await page.getByRole("heading", { level: 1 }).waitFor();
      return performance.now() - startMs;
    };
    times.plain.push(await shown(plainUrl));
    await signIn(page, running.url, key);
    await page.goto("about:blank");
    const session = await context.newCDPSession(page);
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    times.console.push(await shown(running.url));
    await context.close();
  }
} finally {
  await browser.close();
  await running.close();
  plain.close();
}
const limit = median(times.plain);
printTable(
  ["the console", "measured", "console / limit", "bound"],
  [
    ["first load, JavaScript", kB(bytesOf(isFirst)), "", "35 kB"],
    ["first load, CSS", kB(bytesOf((name) => name.endsWith(".css.gz"))), "", "8 kB"],
    ["all pages", kB(bytesOf(() => true)), "", "120 kB"],
    ["a page without scripts", `${limit.toFixed(0)} ms`, "1.00", ""],
    [
      "first view, nothing cached",
      `${median(times.console).toFixed(0)} ms`,
      (median(times.console) / limit).toFixed(2),
      "300 ms",
    ],
  ],
);
