/** One word of a POSIX shell's command line: in quotes where the shell would read it otherwise. Pure. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
