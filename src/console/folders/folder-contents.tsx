import type { JSX } from "preact";
import type { FolderAdded, FolderPreview, LeftOut } from "../../wire/daemon-folders.ts";
import { Notice } from "../parts/notice.tsx";
import { bytes, count, counted } from "../view/format.ts";

const KINDS: Readonly<Record<string, string>> = {
  pdf: "PDF",
  image: "Images",
  office: "Office documents and books",
  link: "Links",
  markdown: "Markdown",
  html: "Web pages",
  mail: "E-mails",
  csv: "Tables (CSV)",
  tsv: "Tables (TSV)",
  notebook: "Notebooks",
  subtitles: "Subtitles",
  rtf: "Rich text",
  org: "Org",
  rst: "reStructuredText",
  asciidoc: "AsciiDoc",
  plain: "Text and source code",
};

/** What adding a folder would do. */
export type Preview = FolderPreview & Pick<FolderAdded, "path" | "file" | "obstacle">;

/** What would be taken of a folder, and what is left out by which rule. */
export function FolderContents({ preview }: { readonly preview: Preview }): JSX.Element {
  const { files, path, realPath, complete, kinds, first, leftOut } = preview;
  return (
    <section class="card stack" aria-labelledby="preview">
      <div class="stack tight">
        <h2 id="preview" tabIndex={-1} ref={focus}>
          {complete ? "" : "At least "}
          {counted(files, "file")}, {bytes(preview.bytes)}
        </h2>
        <p class="muted">
          {files === 0 ? "Nothing would be taken from " : "Would be taken from "}
          <span class="path">{path}</span>
          {realPath === null ? null : (
            <>
              , a link to <span class="path">{realPath}</span>
            </>
          )}
          .
        </p>
      </div>
      <Warnings preview={preview} />
      {kinds.length === 0 ? null : (
        <div class="columns">
          <div>
            <h3 id="preview-kinds">By kind</h3>
            <ul class="counts" aria-labelledby="preview-kinds">
              {kinds.map((each) => (
                <li key={each.kind}>
                  <span>{KINDS[each.kind] ?? each.kind}</span>
                  <span class="numeric">{count(each.files)}</span>
                  <span class="numeric muted">{bytes(each.bytes)}</span>
                </li>
              ))}
            </ul>
          </div>
          <div>
            <h3 id="preview-first">{files > first.length ? `The first ${first.length}` : "Files"}</h3>
            <ul class="path names" aria-labelledby="preview-first">
              {first.map((name) => (
                <li key={name}>{name}</li>
              ))}
            </ul>
          </div>
        </div>
      )}
      {leftOut.length === 0 ? null : (
        <div>
          <h3 id="preview-left-out">Left out</h3>
          <ul class="counts" aria-labelledby="preview-left-out">
            {leftOut.map((each) => (
              <li key={each.reason}>
                <span>
                  {each.reason}
                  <span class="path muted block">{each.example}</span>
                </span>
                <span class="numeric">{leftOutWords(each)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

function Warnings({ preview }: { readonly preview: Preview }): JSX.Element {
  const { complete, unreadable, unreadablePaths, documents, obstacle, path } = preview;
  return (
    <>
      {obstacle === null ? null : (
        <Notice kind="bad" title={obstacle.message}>
          <p>{obstacle.hint}</p>
        </Notice>
      )}
      {complete ? null : (
        <Notice kind="wait" title="The preview stopped before it had seen everything">
          <p>It takes 4 seconds and 250,000 files at most. A sync takes everything.</p>
        </Notice>
      )}
      {unreadable === 0 ? null : (
        <Notice kind="bad" title={`${counted(unreadable, "path")} cannot be read`}>
          <ul class="path">
            {unreadablePaths.map((each) => (
              <li key={each}>{each === "" ? path : each}</li>
            ))}
          </ul>
        </Notice>
      )}
      {documents === 0 ? null : (
        <Notice
          kind="good"
          title={`${counted(documents, "document")} of this folder ${documents === 1 ? "is" : "are"} still here`}
        >
          <p>If you add it, it takes them over; none is sent twice.</p>
        </Notice>
      )}
    </>
  );
}

/** `12 files`, `1 folder`, `3 files and 1 folder`. */
function leftOutWords({ files, folders }: LeftOut): string {
  const parts = [
    ...(files > 0 ? [counted(files, "file")] : []),
    ...(folders > 0 ? [counted(folders, "folder")] : []),
  ];
  return parts.join(" and ");
}

/** A person who asked for it goes on from it. */
function focus(heading: HTMLElement | null): void {
  heading?.focus();
}
