import { describe, expect, it } from "vitest";
import { subtitleText } from "../../../src/formats/markup/subtitles.ts";

describe("subtitles", () => {
  it.each([
    [
      "WebVTT: speakers, without styles, notes, positions and tags",
      "WEBVTT Kind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE by hand\n\nintro\n00:01.000 --> 00:02.000 align:start\n<v.loud Anna>Hello, <i>all</i> &amp; some.\n\n00:02.500 --> 00:04.000\n<v Anna>How are you?\n\n00:04.100 --> 00:05.000\n<v Ben>Fine.</v>\n",
      "[00:00:01]\nAnna: Hello, all & some. How are you?\n\n[00:00:04]\nBen: Fine.",
    ],
    [
      "SubRip: a pause begins a paragraph, a dash a line",
      "\uFEFF1\r\n00:00:01,000 --> 00:00:03,000\r\n{\\an8}- Who is there?\r\n- Me.\r\n\r\n2\r\n01:02:03,5 --> 01:02:04,000\r\nLater.\r\n",
      "[00:00:01]\n- Who is there?\n- Me.\n\n[01:02:03]\nLater.",
    ],
    [
      "lines that roll up are taken once",
      "WEBVTT\n\n00:00.000 --> 00:01.000\none\n\n00:01.000 --> 00:02.000\none\ntwo\n\n00:02.000 --> 00:03.000\ntwo\nthree\n",
      "[00:00:00]\none two three",
    ],
  ])("subtitles become paragraphs under their times: %s", (_name, text, expected) => {
    expect(subtitleText(text)).toBe(expected);
  });

  it("subtitles are split into paragraphs at sentences", () => {
    const cues = Array.from(
      { length: 40 },
      (_, at) =>
        `${at}\n00:00:${String(at).padStart(2, "0")},000 --> 00:00:${String(at).padStart(2, "0")},900\n${"word ".repeat(10)}${at} end.`,
    );
    const paragraphs = subtitleText(cues.join("\n\n"))?.split("\n\n") ?? [];
    expect(paragraphs.length).toBeGreaterThan(2);
    for (const paragraph of paragraphs) expect(paragraph).toMatch(/^\[00:00:\d\d\]\n.{40,800}end\.$/s);
  });

  it.each(["", "WEBVTT\n", "Just a text with an --> arrow."])(
    "a text without cues is no subtitles: %j",
    (text) => {
      expect(subtitleText(text)).toBeUndefined();
    },
  );

  it("hostile subtitles take time linear in their length", () => {
    const before = process.cpuUsage();
    for (const sign of ["<", "<v.", "<v a", "{\\", "\n ", "1:", "-->", "&"])
      subtitleText(`00:00.000 --> 00:01.000\n${sign.repeat(1_000_000 / sign.length)}`);
    // Quadratic time would take minutes.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(10_000);
  });
});
