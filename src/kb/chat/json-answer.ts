const FENCE = "```";

/** The one JSON object of an answer that was to be nothing else, out of the fences that some models put around it. Undefined: it is none. Pure. */
export function jsonObjectOf(text: string): string | undefined {
  const bare = unfenced(text.trim());
  try {
    const value: unknown = JSON.parse(bare);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? bare : undefined;
  } catch {
    return undefined; // no JSON
  }
}

/** By places and not by a pattern, which would try every way to split a long answer. */
function unfenced(text: string): string {
  const head = text.indexOf("\n");
  const isFenced = text.startsWith(FENCE) && text.endsWith(FENCE) && head !== -1;
  if (!isFenced || !["", "json"].includes(text.slice(FENCE.length, head).trim())) return text;
  return text.slice(head, -FENCE.length).trim();
}
