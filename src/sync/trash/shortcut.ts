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
