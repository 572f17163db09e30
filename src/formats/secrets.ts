import { setImmediate } from "node:timers/promises";

/** A match in a text that a rule takes for a secret. Never contains the secret. */
export interface FoundSecret {
  /** The rule set's name of the rule and of what it found, such as `github: GITHUB_TOKEN`. */
  readonly rule: string;
  /** Line of the text, from 1. */
  readonly line: number;
}

/** Characters checked at a time: some two milliseconds, so that a long text does not block the loop. */
const SLICE_CHARS = 64 * 1024;
/** Characters that consecutive slices share: more than the longest private key in use, RSA of 8192 bits. */
const SHARED_CHARS = 8 * 1024;
/** Beginning of the names of the rules. */
const RULE_NAMES = "@secretlint/secretlint-rule-";

/**
 * Finds the first secret in a text: private keys, tokens and passwords in addresses, by the recommended rules of secretlint
 * (https://github.com/secretlint/secretlint), which run in this process and send nothing.
 */
export async function findSecret(text: string): Promise<FoundSecret | undefined> {
  const lint = await (linter ??= openLinter());
  let linesBefore = 0;
  for (let start = 0; ; start += SLICE_CHARS) {
    const slice = text.slice(start, start + SLICE_CHARS + SHARED_CHARS);
    const found = await lint(slice);
    if (found !== undefined) return { ...found, line: found.line + linesBefore };
    if (start + SLICE_CHARS >= text.length) return undefined;
    linesBefore += countLines(slice.slice(0, SLICE_CHARS));
    await setImmediate();
  }
}

type Lint = (text: string) => Promise<FoundSecret | undefined>;

let linter: Promise<Lint> | undefined;

/** Loads the rules, which a program that checks nothing saves. */
async function openLinter(): Promise<Lint> {
  const [{ lintSource }, { creator }] = await Promise.all([
    import("@secretlint/core"),
    import("@secretlint/secretlint-rule-preset-recommend"),
  ]);
  const config = { rules: [{ id: `${RULE_NAMES}preset-recommend`, rule: creator, options: {} }] };
  return async (content) => {
    const { messages } = await lintSource({
      // A name that no rule judges.
      source: { filePath: "/text.txt", ext: ".txt", contentType: "text", content },
      options: { config, maskSecrets: true, noPhysicFilePath: true },
    });
    const [first] = messages
      .filter(({ messageId, range }) => messageId !== "BasicAuth" || !isExample(content.slice(...range)))
      .toSorted((a, b) => a.range[0] - b.range[0]);
    if (first === undefined) return undefined;
    const { ruleId, messageId, loc } = first;
    const name = ruleId.startsWith(RULE_NAMES) ? ruleId.slice(RULE_NAMES.length) : ruleId;
    return { rule: `${name}: ${messageId}`, line: loc.start.line };
  };
}

/**
 * Decides whether an address with a password is one that manuals use, such as `https://public:koala@example.org`: the password
 * is of words of up to seven lower-case letters.
 */
function isExample(address: string): boolean {
  return /:[a-z]{1,7}(?:[-_][a-z]{1,7})*@[^@]*$/.test(address);
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}
