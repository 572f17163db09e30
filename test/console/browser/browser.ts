import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { readConsole } from "../../../src/kb/console/pages.ts";
import type { ConsoleFile } from "../../../src/kb/console/pages.ts";

/** Where Debian and others install a browser that playwright-core drives. */
const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const program = [process.env["KBSYNC_CHROMIUM"] ?? "", ...PROGRAMS].find((path) => existsSync(path));

/** Why no browser can be driven here, for the title of a suite; empty: one can. */
export const whyNoBrowser =
  program === undefined ? ": skipped, there is no chromium (`apt-get install chromium`)" : "";

/** The built console. */
export function builtConsole(): readonly ConsoleFile[] {
  const files = readConsole(fileURLToPath(new URL("../../../dist/console", import.meta.url)));
  assert(files.length > 0, "the console is not built: `npm run build`");
  return files;
}

/** Starts the browser. `hosts`: names that lead to this machine. */
export async function openBrowser(hosts: readonly string[] = []): Promise<Browser> {
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(",");
  return chromium.launch({
    ...(program !== undefined && { executablePath: program }),
    args: [
      "--no-sandbox", // root has none
      "--disable-background-networking",
      ...(rules === "" ? [] : [`--host-resolver-rules=${rules}`]),
    ],
  });
}

/** A page that notes what no page of the console may do. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, and breaches of the content security policy. */
  readonly problems: readonly string[];
}

/** Opens a page in a context. */
export async function watchedPage(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A refused request is an error in the console's log, and a case of the tests.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      problems.push(message.text());
  });
  return { page, problems };
}

/** Signs a page in with a link of this key. */
export async function signIn(page: Page, url: string, key: string): Promise<void> {
  const answer = await fetch(`${url}/console/links`, { method: "POST", headers: { pauthkey: key } });
  const { data } = (await answer.json()) as { data: { token: string } };
  await page.goto(`${url}/#link=${data.token}`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns what axe finds wrong with the page as it is, in light and in dark. */
export async function violations(page: Page): Promise<readonly string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(axe);
    const all = await page.evaluate(async () => {
      // Defined by the script before.
      const { violations: each } = await (
        globalThis as unknown as {
          axe: {
            run: () => Promise<{
              violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
            }>;
          };
        }
      ).axe.run();
      return each.flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`),
      );
    });
    found.push(...all.map((text) => `${colorScheme} ${text}`));
  }
  return found;
}
