import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, openAsking } from "../kb/chat/asking.ts";
import { picture, recall } from "../kb/ingest/extract/picture-fixture.ts";
import { fileForm } from "../kb/service/running.ts";
import type { Running } from "../kb/service/running.ts";

const samples = join(import.meta.dirname, "../../../shared/data/images");
const SLOW = { timeout: 900_000 };
/** The floor: nine of ten known words on screenshots and clean scans. */
const RECALL_MIN = 0.9;

/** `npm run test:images` reads these too: the same as `ocr.test.ts` reads without an agent, and a second full page. */
const MORE = [
  "ocrmypdf/crom.png",
  "tesseract/phototest.tif",
  "tesseract/phototest-rotated-L.png",
  "tesseract/eurotext.tif",
  "tesseract/8087_054.3B.tif",
];
const takesAll = process.env["KBSYNC_TEST_IMAGES"] === "all";

let running: Running;
beforeAll(async () => {
  running = await openAsking(undefined);
}, SLOW.timeout);
afterAll(() => running.close());

describe.skipIf(!existsSync(samples))(
  "the builtin agent (skipped where ../shared/data/images is absent)",
  SLOW,
  () => {
    it.each([
      "tesseract/phototestrot.tif",
      "tesseract/phototest-rotated-R.png",
      "tesseract/phototest-rotated-180.png",
      "tesseract/8071_093.3B.tif",
      ...(takesAll ? MORE : []),
    ])("answers with nine of ten known words of %s", async (name) => {
      const path = join(samples, name);
      const truth = readFileSync(path.replace(/\.\w+$/, ".truth.txt"), "utf8");
      const found = recall(truth, await contentOf(readFileSync(path), basename(path)));
      // oxlint-disable-next-line no-console -- the figures are the point of this run
      console.info(`${name}: ${found.toFixed(3)}`);
      expect(found).toBeGreaterThanOrEqual(RECALL_MIN);
    });
  },
);

describe("the builtin agent", SLOW, () => {
  const LINES = [
    "Settings",
    "Notifications are sent to harbour@example.com",
    "Language: English   Time zone: UTC+01:00",
    "3 files failed, 1204 in agreement",
    "Save changes   Discard",
  ];
  it.each([
    ["light", false],
    ["dark", true],
  ])("answers with nine of ten known words of a %s screenshot", async (_name, isDark) => {
    const drawn = await picture(LINES);
    const { width } = await drawn.metadata();
    // As a screen of 100 dots an inch shows what was drawn at 150. At 96, an address in the dark picture is not read.
    const small = drawn.resize({ width: Math.round((width * 100) / 150) });
    const png = await (isDark ? small.negate({ alpha: false }) : small).png().toBuffer();
    const content = await contentOf(png, "screen.png");
    const found = recall(LINES.join(" "), content);
    // oxlint-disable-next-line no-console -- the figures are the point of this run
    console.info(`screenshot, ${isDark ? "dark" : "light"}: ${found.toFixed(3)}`);
    expect(found).toBeGreaterThanOrEqual(RECALL_MIN);
  });
});

/** What the agent answers to an image alone. */
async function contentOf(bytes: Buffer, name: string): Promise<string> {
  const form = fileForm(bytes, name);
  const { file_url: url } = (await running.send("POST", "/files/upload", { body: form })).json;
  const { json } = await ask(running, { user_urls: [{ type: "image", url }] });
  return json.response.data.content;
}
