/** Writes a clause as a sentence: a capital letter at its beginning, and a stop at its end. Leaves names of commands and files alone. */
export function sentence(text: string): string {
  const capitalised = /^\p{Ll}+[\s,:]/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return capitalised === "" || /[.!?:…]["”)]?$/.test(capitalised) ? capitalised : `${capitalised}.`;
}

/** Cuts a text into plain pieces and those between backticks. */
export function pieces(text: string): readonly { readonly text: string; readonly isCode: boolean }[] {
  const parts = text.split("`");
  // Without a partner, the last backtick is a character like others.
  if (parts.length % 2 === 0) parts.push(parts.splice(-2, 2).join("`"));
  return parts.map((part, at) => ({ text: part, isCode: at % 2 === 1 })).filter((piece) => piece.text !== "");
}
