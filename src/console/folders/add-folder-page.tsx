import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { NewFolder } from "../../wire/daemon-folders.ts";
import type { Tier } from "../../wire/primitives.ts";
import { askDaemon } from "../client/daemon.ts";
import { RequestError } from "../client/api.ts";
import { TIER_WORDS, TIERS } from "../knowledge/tiers.ts";
import { Choices, TextArea, TextField } from "../parts/fields.tsx";
import { Bones, ErrorNotice } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { lastName } from "../view/format.ts";
import { go } from "../view/router.ts";
import { useSubmit } from "../view/submit.ts";
import { FolderContents, type Preview } from "./folder-contents.tsx";

interface Wish {
  readonly path: string;
  readonly tier: Tier;
  readonly owner: string;
  readonly exclude: string;
}

/** Adds a folder, after a preview of what would be taken. */
export function AddFolderPage(): JSX.Element {
  const [wish, setWish] = useState<Wish>({ path: "", tier: "fastest", owner: "", exclude: "" });
  const [preview, setPreview] = useState<{ readonly of: string; readonly found: Preview }>();
  const [problem, setProblem] = useState<string>();
  const input = useRef<HTMLInputElement>(null);
  const set = (change: Partial<Wish>): void => setWish({ ...wish, ...change });
  const looking = useSubmit(async () => {
    const missing = problemOf(wish.path);
    setProblem(missing);
    if (missing !== undefined) {
      input.current?.focus();
      return;
    }
    setPreview(undefined);
    const { preview: found, ...plan } = await askDaemon("add", { ...requestOf(wish), dryRun: true });
    if (found !== null) setPreview({ of: scopeOf(wish), found: { ...plan, ...found } });
  });
  return (
    <Page
      title="Add a folder"
      width="narrow"
      intro={
        <>
          <a href={addressOf(["folders"])}>Folders</a> › Its files become documents, and stay in agreement
          from then on. They are only read.
        </>
      }
    >
      <form class="card stack" noValidate onSubmit={looking.submit}>
        <TextField
          label="Folder"
          needed
          problem={problem}
          hint="On the machine of the daemon. ~ is the home folder of its user."
          ref={input}
          class="input path"
          placeholder="~/notes"
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          value={wish.path}
          onText={(value) => {
            set({ path: value });
            setProblem(undefined);
          }}
        />
        <TextArea
          label="Leave out"
          hint="Globs, one a line: *.log, drafts/**. A .kbsyncignore file in the folder does the same. Hidden files are always left out."
          class="input path low"
          rows={2}
          spellcheck={false}
          value={wish.exclude}
          onText={(value) => set({ exclude: value })}
        />
        <div>
          <button type="submit" class="button primary" disabled={looking.isBusy}>
            Preview
          </button>
        </div>
      </form>
      {looking.error === undefined ? null : <ErrorNotice error={looking.error} />}
      {looking.isBusy ? <Bones lines={5} /> : null}
      {preview === undefined || looking.isBusy ? null : (
        <Found preview={preview.found} isStale={preview.of !== scopeOf(wish)} wish={wish} set={set} />
      )}
    </Page>
  );
}

/** What would be taken, how it would be searched, and the button that does it. */
function Found({
  preview,
  isStale,
  wish,
  set,
}: {
  readonly preview: Preview;
  readonly isStale: boolean;
  readonly wish: Wish;
  readonly set: (change: Partial<Wish>) => void;
}): JSX.Element {
  const { error, isBusy, submit } = useSubmit(async () => {
    const { path, applied } = await askDaemon("add", { ...requestOf(wish), path: preview.path }).catch(
      added(preview),
    );
    toast(
      `${lastName(path)} is added, and is being scanned.${applied.length === 0 ? "" : ` Also in force now: ${applied.join(", ")}.`}`,
    );
    go(addressOf(["folders"], { path }));
  });
  return (
    <>
      <FolderContents preview={preview} />
      <form class="card stack" onSubmit={submit}>
        <Choices
          legend="Retrieval preference"
          name="tier"
          value={wish.tier}
          options={TIERS.map((value) => ({ value, ...TIER_WORDS[value] }))}
          onChange={(tier) => set({ tier })}
        />
        <TextField
          label="Owner"
          hint={`Searches name it. Folders with one owner are searched together. Empty: ${preview.ownerId}`}
          value={wish.owner}
          onText={(value) => set({ owner: value })}
        />
        {error === undefined ? null : <ErrorNotice error={error} />}
        <p class="hint">
          {preview.file === null ? null : (
            <>
              This writes <span class="path">{preview.file}</span>.{" "}
            </>
          )}
          The daemon reads it at once and goes on with its other folders after a scan; nothing is sent twice.
        </p>
        <div class="row">
          <button
            type="submit"
            class="button primary"
            disabled={isBusy || isStale || preview.obstacle !== null}
          >
            Add folder
          </button>
          {isStale ? (
            <span class="hint">The folder or what is left out has changed: preview it again.</span>
          ) : null}
        </div>
      </form>
    </>
  );
}

/** An answer may be lost although the folder was added. */
function added({
  path,
}: Preview): (error: unknown) => { readonly path: string; readonly applied: readonly string[] } {
  return (error) => {
    if (error instanceof RequestError && error.code === "source_known") return { path, applied: [] };
    throw error;
  };
}

function requestOf({ path, tier, owner, exclude }: Wish): NewFolder {
  const globs = exclude.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
  return {
    path: path.trim(),
    tier,
    ...(owner.trim() !== "" && { ownerId: owner.trim() }),
    ...(globs.length > 0 && { exclude: globs }),
  };
}

/** The subject of a preview. */
function scopeOf({ path, exclude }: Wish): string {
  return JSON.stringify([path.trim(), exclude]);
}

function problemOf(path: string): string | undefined {
  const typed = path.trim();
  if (typed === "") return "Enter a folder.";
  return /^(?:\/|~\/|~$)/.test(typed) ? undefined : "Enter the whole path: it begins with / or ~/.";
}
