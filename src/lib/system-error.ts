/** Meanings of codes on which a person can act: the system's, and those of the processes that read documents. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied"],
  ["EPERM", "not permitted"],
  ["EIO", "its disk fails"],
  ["ESTALE", "its file server has replaced it"],
  ["ELOOP", "its links form a circle"],
  ["READER_BUSY", "this machine is too busy to read it"],
  ["READER_UNABLE", "the process that reads documents does not start"],
]);

/** Returns the code of a system error with its meaning, for a person: `permission denied (EACCES)`. */
export function codeWords(code: string): string {
  const words = WORDS.get(code);
  return words === undefined ? code : `${words} (${code})`;
}
