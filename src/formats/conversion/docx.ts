import mammoth from "mammoth";
import { htmlToMarkdown } from "../markup/html-markdown.ts";
import { type Archive, refuseBombs } from "./archive.ts";
import type { Reading } from "./conversion.ts";
import { readMargins } from "./docx-margins.ts";
import { packageTitle } from "./office-package.ts";

/** Additional styles that are headings to a reader and that the library does not know. */
const STYLES = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"];

/**
 * Reads a Word document: headings, lists, tables, links, notes, the descriptions of pictures, and last the headers and
 * footers.
 */
export async function readDocx(bytes: Buffer, archive: Archive): Promise<Reading> {
  await refuseBombs(bytes, (name) => /\.(?:xml|rels)$/i.test(name));
  const { value } = await mammoth.convertToHtml(
    { buffer: bytes },
    {
      styleMap: STYLES,
      // A picture would come as megabytes of base64.
      convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })),
      externalFileAccess: false,
    },
  );
  const { title: heading, markdown } = htmlToMarkdown(value, { whole: true });
  const parts = [markdown, await readMargins(archive)].filter((part) => part !== "");
  return { title: (await packageTitle(archive)) ?? heading, text: parts.join("\n\n") };
}
