/** One family of files that programs leave beside the documents: never documents themselves. */
interface PassingFile {
  readonly reason: string;
  readonly pattern: RegExp;
}

/**
 * Names of editors' temporary files, backups and unfinished downloads, each as its program writes it. Names that start
 * with a dot are not here: every hidden file is left out.
 */
const PASSING_FILES: readonly PassingFile[] = [
  { reason: "an editor's backup (its name ends in ~)", pattern: /~$/ },
  // Vim tests whether it may write a folder with a file named 4913, or a number a little higher.
  { reason: "a temporary file of Vim", pattern: /^(?:4913|5036|5159|.+\.sw[a-z]|.+\.un~)$/ },
  { reason: "a temporary file of Emacs", pattern: /^#.*#$/ },
  // As `kbsync backup` names it in a folder that is there: its manifest holds the addresses of uploads.
  { reason: "a backup of kbsync's", pattern: /^kbsync-\d{8}T\d{6}Z(?:\.partial-\d+)?$/ },
  { reason: "a lock file of an office program", pattern: /^~\$|^~WRL\d+\.tmp$|^~WRD\d+\.tmp$/i },
  { reason: "a temporary file of a JetBrains editor", pattern: /___jb_(?:tmp|old|bak)___$/ },
  { reason: "a temporary file of Kate", pattern: /\.kate-swp$/ },
  // `name.tmp`, `name.tmp.4711.1700000000` (npm's write-file-atomic has `name.1234567890`), `name.tmp-abc123`, Sublime's `.subl1a2.tmp`.
  { reason: "a temporary file", pattern: /\.(?:tmp|temp)(?:[.-][\w.-]*)?$|\.sb-[0-9a-f]{8}-\w{6}$/i },
  {
    reason: "an unfinished download",
    pattern: /\.(?:part|partial|crdownload|download|!ut|!qb|aria2|opdownload|filepart|td|xltd)$/i,
  },
];

/** Any of the above, as one expression: nearly every name fails it, and this runs for every file of a scan. */
const ANY = new RegExp(PASSING_FILES.map(({ pattern }) => `(?:${pattern.source})`).join("|"), "i");

/** Why a file or folder of this name is never a document, in words; undefined when the name says nothing of the kind. */
export function passingReason(name: string): string | undefined {
  if (!ANY.test(name)) return undefined;
  return PASSING_FILES.find(({ pattern }) => pattern.test(name))?.reason;
}
