/** A marker: `[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]`, in base32, as tags of source, file, bytes and writer. */
const MARKER = /^\[kb:[a-z2-7]{8}\.[a-z2-7]{12}\.[a-z2-7]{12}\.[a-z2-7]{8}\]$/i;
const MARKER_CHARS = 48;

/**
 * Splits a description into its text for people and the marker at its end, by which a daemon recognises its documents. Of
 * several markers the last one counts; none is part of the text. Without one, the marker is empty and the text is the whole
 * description. Takes linear time. Pure.
 */
export function splitMarker(description: string): { readonly text: string; readonly marker: string } {
  let marker = "";
  let text = description;
  // Blanks are trimmed with `trimEnd`: a pattern that begins with `\s*` takes quadratic time.
  for (let rest = text.trimEnd(); MARKER.test(rest.slice(-MARKER_CHARS)); rest = text) {
    if (marker === "") marker = rest.slice(-MARKER_CHARS);
    text = rest.slice(0, -MARKER_CHARS).trimEnd();
  }
  return { text, marker };
}

/** Returns the part of a description that is meant for people. */
export function withoutMarker(description: string): string {
  return splitMarker(description).text;
}

/** Joins what `splitMarker` split, also after a change of the text. */
export function withMarker(text: string, marker: string): string {
  return [text, marker].filter((part) => part !== "").join(" ");
}
