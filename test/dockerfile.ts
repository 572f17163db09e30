/** One line of a Dockerfile, with what continues it. */
export interface Instruction {
  readonly name: string;
  readonly words: string;
}

/** A part of a Dockerfile, from one FROM to the next. */
export interface Stage {
  readonly base: string;
  readonly alias: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** The stages of a Dockerfile. Throws for a line that is no instruction. */
export function stagesOf(text: string): readonly Stage[] {
  const stages: { base: string; alias: string | undefined; instructions: Instruction[] }[] = [];
  const lines = text
    .split("\n")
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n");
  for (const line of lines) {
    const [, name, words] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (name === undefined || words === undefined) throw new Error(`no instruction: ${line}`);
    if (name === "FROM") {
      const [, base = "", alias] = /^(\S+)(?: AS (\S+))?$/.exec(words) ?? [];
      stages.push({ base, alias, instructions: [] });
    } else {
      const stage = stages.at(-1);
      if (stage === undefined) throw new Error(`before the first FROM: ${line}`);
      stage.instructions.push({ name, words });
    }
  }
  return stages;
}

/** What a COPY takes from the folder that is built, or from the stage `from`, and where it puts that. */
export function copyOf({ words }: Instruction): {
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
} {
  const parts = words.split(/\s+/);
  const from = parts.find((part) => part.startsWith("--from="))?.slice("--from=".length);
  const paths = parts.filter((part) => !part.startsWith("--"));
  return { from, sources: paths.slice(0, -1), target: paths.at(-1) ?? "" };
}

/** The variables that an image sets for what runs in it. */
export function environmentOf(stage: Stage | undefined): Readonly<Record<string, string>> {
  const words = stage?.instructions.filter(({ name }) => name === "ENV").map((one) => one.words) ?? [];
  return Object.fromEntries(
    words.flatMap((line) =>
      [...line.matchAll(/(\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value]),
    ),
  );
}
