import type { Normalisation } from "../history.ts";

/** What a service makes of what it is sent. */
export interface Normaliser {
  text(text: string): string;
  title(title: string): string;
}

/** Without an argument nothing is changed. */
export function normaliserOf(normalisation: Normalisation | undefined): Normaliser {
  if (normalisation === undefined) return { text: (text) => text, title: (title) => title };
  const { trims, composes, escapes = false, titleChars } = normalisation;
  const text = (value: string): string => {
    const composed = composes ? value.normalize("NFC") : value;
    return trims ? composed.replaceAll(/[ \t]+$/gm, "") : composed;
  };
  return {
    text: (value) => (escapes ? text(value).replaceAll("&", "&amp;") : text(value)),
    title: (title) => (titleChars === 0 ? text(title) : text(title).slice(0, titleChars)),
  };
}
