import { CONVERTED_TEXT, OFFICE_EXTENSIONS, TEXT_FORMATS, type TextFormat } from "./markup/text-formats.ts";
import { beginsBinary } from "./text.ts";

/** Format of a file whose text must be extracted. A zip archive is examined further. */
export type Container = "zip" | "mail" | "html" | "csv" | "tsv" | "subtitles" | "notebook" | "rtf";

/** The properties of a resource that its file's name implies, before any byte is read. */
export type NamedKind =
  /** A PDF or an image: uploaded unchanged. */
  | { readonly kind: "file" }
  /** A shortcut that holds an address. */
  | { readonly kind: "link"; readonly format: "url" | "webloc" }
  /** Text, if the bytes confirm it. */
  | { readonly kind: "content"; readonly format: TextFormat }
  /** A document whose text is extracted from its zip archive and sent as Markdown. */
  | { readonly kind: "office" }
  /** A format that is never text and that no service accepts. */
  | { readonly kind: "skipped"; readonly reason: string };

const FILE: NamedKind = { kind: "file" };
const PLAIN: NamedKind = { kind: "content", format: "plain" };
const OFFICE: NamedKind = { kind: "office" };

/** Formats whose bytes are never plain text, so that a folder of films need not be read to find out. */
const NEVER_TEXT: readonly (readonly [string, string])[] = [
  [
    "an office document of a format that is not read",
    "doc dot xls xlt xlsb ppt pot pps odg pages numbers vsd vsdx mdb accdb",
  ],
  ["a book or print format", "mobi azw azw3 djvu chm xps ps eps"],
  [
    "an archive",
    "zip gz tgz bz2 tbz xz txz zst lz lz4 lzma 7z rar tar cab iso img dmg deb rpm apk jar war ear whl nupkg vsix crx xpi",
  ],
  ["sound", "mp3 m4a aac flac ogg oga opus wav wma aiff mid midi"],
  ["a film", "mp4 m4v mkv mov avi wmv webm flv mpg mpeg 3gp vob"],
  [
    "an image in a format that is not taken",
    "heic heif avif ico icns psd ai xcf raw cr2 nef arw dng jxl jp2 tga dds exr hdr",
  ],
  ["a font", "ttf otf woff woff2 eot"],
  ["a program", "exe dll so dylib o a obj lib class pyc pyo pyd wasm bin elf msi ko node"],
  [
    "binary data",
    "db sqlite sqlite3 db3 mdf ldf ibd frm dbf parquet feather avro orc npy npz pkl pickle h5 hdf5 onnx safetensors gguf pt pth ckpt tflite",
  ],
  // Some of these are text, but a private key does not belong in a search index.
  ["a key or key store", "pem key p12 pfx jks keystore kdbx gpg pgp"],
];

const BY_EXTENSION: ReadonlyMap<string, NamedKind> = new Map<string, NamedKind>([
  ...each("pdf png jpg jpeg webp gif bmp tif tiff", () => FILE),
  ...each(OFFICE_EXTENSIONS, () => OFFICE),
  ...each("url", () => ({ kind: "link", format: "url" })),
  ...each("webloc", () => ({ kind: "link", format: "webloc" })),
  ...TEXT_FORMATS.flatMap(([format, extensions]) => each(extensions, () => ({ kind: "content", format }))),
  ...NEVER_TEXT.flatMap(([what, extensions]) =>
    each(extensions, (extension) => ({
      kind: "skipped",
      reason: `.${extension} is ${what}: no text is taken from it`,
    })),
  ),
]);

/**
 * The kind that a name stands for. A name that implies nothing (`LICENSE`, `notes.xyz`) is plain text if its bytes confirm
 * it, which `readDocument` checks.
 */
export function kindOfName(name: string): NamedKind {
  const dot = name.lastIndexOf(".");
  if (dot <= 0) return PLAIN;
  return BY_EXTENSION.get(name.slice(dot + 1).toLowerCase()) ?? PLAIN;
}

function each(extensions: string, make: (extension: string) => NamedKind): [string, NamedKind][] {
  return extensions.split(" ").map((extension) => [extension, make(extension)]);
}

/** Whether the text of a file of this name is extracted and sent as Markdown, so that text and bytes differ. */
export function isConverted(named: NamedKind): boolean {
  return named.kind === "office" || (named.kind === "content" && CONVERTED_TEXT.has(named.format));
}

/**
 * The format from which a file's text must be extracted, judged by its first kilobytes; undefined if the bytes are the text
 * or not text at all. HTML is recognised by name only, because a program may contain a whole page. A mail is recognised by
 * name and by its first lines.
 */
export function containerOf(named: NamedKind, head: Buffer): Container | undefined {
  if (startsWith(head, "PK\x03\x04")) return "zip";
  if (named.kind !== "content") return undefined;
  switch (named.format) {
    case "html":
    case "csv":
    case "tsv":
    case "subtitles":
    case "notebook":
      return beginsBinary(head) ? undefined : named.format;
    case "rtf":
      return startsWith(head, "{\\rtf") ? "rtf" : undefined;
    case "mail":
      return beginsAsMail(head) ? "mail" : undefined;
    case "markdown":
    case "asciidoc":
    case "org":
    case "rst":
    case "plain":
      return undefined;
  }
}

/** Whether a file of this name is an e-mail, if its bytes confirm it. */
export function isMail(named: NamedKind): boolean {
  return named.kind === "content" && named.format === "mail";
}

/** Whether these bytes start an OLE file: an office document from before 2007, or a password-protected current one. */
export function isOle(head: Uint8Array): boolean {
  return startsWith(head, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
}

/** Whether the head consists of header lines, some of them typical of mails. */
function beginsAsMail(head: Buffer): boolean {
  const lines = head.subarray(0, MAIL_HEAD_BYTES).toString("latin1").split(/\r?\n/);
  const end = lines.indexOf("");
  const header = lines
    .slice(0, end === -1 ? lines.length - 1 : end)
    .filter((line) => !line.startsWith("From "));
  const known = header.filter((line) => MAIL_HEADER.test(line));
  return known.length >= 2 && header.every((line) => /^(?:[!-9;-~]+:|[ \t])/.test(line));
}
const MAIL_HEAD_BYTES = 8192;
const MAIL_HEADER =
  /^(?:from|to|cc|subject|date|received|message-id|mime-version|content-type|return-path|delivered-to):/i;

/** The media type of a PDF or image by its first bytes; undefined for any other content. Twelve bytes suffice. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  return MAGIC.find((magic) => magic.matches(bytes))?.mediaType;
}

const MAGIC: readonly { readonly mediaType: string; matches(bytes: Uint8Array): boolean }[] = [
  { mediaType: "application/pdf", matches: (bytes) => startsWith(bytes, "%PDF-") },
  { mediaType: "image/png", matches: (bytes) => startsWith(bytes, "\x89PNG\r\n\x1a\n") },
  { mediaType: "image/jpeg", matches: (bytes) => startsWith(bytes, "\xff\xd8\xff") },
  { mediaType: "image/gif", matches: (bytes) => startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a") },
  { mediaType: "image/webp", matches: (bytes) => startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8) },
  { mediaType: "image/tiff", matches: (bytes) => startsWith(bytes, "II*\0") || startsWith(bytes, "MM\0*") },
  // Many texts start with "BM". The four reserved bytes after the size are zero in every bitmap.
  { mediaType: "image/bmp", matches: (bytes) => startsWith(bytes, "BM") && startsWith(bytes, "\0\0\0\0", 6) },
];

/** Whether the bytes from `offset` on are the characters of `signature`, one byte each. */
function startsWith(bytes: Uint8Array, signature: string, offset = 0): boolean {
  if (bytes.length < offset + signature.length) return false;
  for (let at = 0; at < signature.length; at++) {
    if (bytes[offset + at] !== signature.charCodeAt(at)) return false;
  }
  return true;
}
