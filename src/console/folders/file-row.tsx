import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ListedFile } from "../../wire/daemon-files.ts";
import { Words } from "../parts/words.tsx";
import { toast } from "../parts/toast.tsx";
import { WhyButton } from "./why-dialog.tsx";

/** A file of a folder with its facts, a command if there is one, and the reasons. */
export function FileRow({
  file,
  words,
  command,
}: {
  readonly file: Pick<ListedFile, "source" | "path">;
  readonly words: string;
  readonly command?: ComponentChildren;
}): JSX.Element {
  return (
    <li>
      <div>
        <span class="path">{file.path === "" ? file.source : file.path}</span>
        {words === "" ? null : (
          <p class="small muted">
            <Words of={words} />
          </p>
        )}
      </div>
      <span />
      {command ?? <span />}
      <WhyButton path={pathOf(file)} />
    </li>
  );
}

/** The whole path of a file. */
export function pathOf({ source, path }: Pick<ListedFile, "source" | "path">): string {
  return `${source}/${path}`;
}

/** Runs a command, shows its words or its failure, and loads again what it changed. */
export function useCommand(reload: () => void) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const run = async (work: () => Promise<string | undefined>): Promise<void> => {
    setIsBusy(true);
    setError(undefined);
    try {
      const words = await work();
      if (words !== undefined) toast(words);
      reload();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return { error, isBusy, run };
}
