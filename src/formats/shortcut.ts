import { lazyModule } from "../lib/lazy-module.ts";
import { URL_CHARS_MAX } from "../wire/constants.ts";
import { decodeEntities } from "./entities.ts";
import { decodeText } from "./text.ts";

const plist = lazyModule((load) => load("plist") as typeof import("plist"));

/**
 * Returns the web address in a shortcut file: `.url` of Windows (an INI file) or `.webloc` of macOS (a property list, XML
 * or binary). Undefined if it has none that a service could fetch.
 */
export function addressOf(bytes: Buffer, format: "url" | "webloc"): string | undefined {
  const address = (format === "url" ? fromUrlFile(bytes) : fromWebloc(bytes))?.trim();
  if (address === undefined || address.length > URL_CHARS_MAX) return undefined;
  const protocol = URL.parse(address)?.protocol;
  return protocol === "http:" || protocol === "https:" ? address : undefined;
}

/**
 * Creates a shortcut file for an address, in the format of its name. The service stores only the address, so the rest of the
 * deleted file is lost.
 */
export function shortcutText(path: string, address: string): string {
  if (!path.toLowerCase().endsWith(".webloc")) return `[InternetShortcut]\nURL=${address}\n`;
  const escaped = address.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0"><dict>',
    `<key>URL</key><string>${escaped}</string>`,
    "</dict></plist>",
    "",
  ].join("\n");
}

function fromUrlFile(bytes: Buffer): string | undefined {
  const decoded = decodeText(bytes);
  if (decoded.kind !== "text") return undefined;
  const section = /^\[InternetShortcut\]\s*$/im.exec(decoded.text);
  if (section === null) return undefined;
  const rest = decoded.text.slice(section.index + section[0].length);
  const nextSection = rest.search(/^\[/m);
  return /^URL\s*=(.*)$/im.exec(nextSection === -1 ? rest : rest.slice(0, nextSection))?.[1];
}

function fromWebloc(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 6).toString("latin1") === "bplist") return fromBinaryList(bytes);
  // An XML list holds this one pair. A parser would only add its own failures on invalid files.
  const found = /<key>\s*URL\s*<\/key>\s*<string>([^<]*)<\/string>/.exec(bytes.toString("utf8"))?.[1];
  return found === undefined ? undefined : decodeEntities(found);
}

function fromBinaryList(bytes: Buffer): string | undefined {
  try {
    const list = plist().parseBinary(bytes);
    if (typeof list !== "object" || list === null || !("URL" in list)) return undefined;
    return typeof list["URL"] === "string" ? list["URL"] : undefined;
  } catch {
    return undefined; // a broken list holds no address; the caller reports it
  }
}
