import type { Strategy, Tier } from "../../wire/primitives.ts";
import type { NewDocument } from "./tray.ts";

export type Method = "url" | "file" | "content";

export const METHODS: readonly { readonly value: Method; readonly label: string; readonly hint: string }[] = [
  { value: "url", label: "URL", hint: "A public page, PDF or image. The service fetches it." },
  { value: "file", label: "Upload File", hint: "PDFs, images, texts, web pages, e-mails. Several at once." },
  { value: "content", label: "Content", hint: "Text or Markdown that you type or paste." },
];

/** The contents of the form. */
export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly method: Method;
  readonly url: string;
  readonly content: string;
  readonly files: readonly File[];
  readonly tier: Tier;
  readonly strategy: Strategy;
  readonly chunkSize: string;
  readonly chunkOverlap: string;
  readonly owner: string;
  readonly metadata: readonly { readonly name: string; readonly value: string }[];
}

export type Problems = Partial<Record<keyof Draft, string>>;

export const EMPTY: Draft = {
  name: "",
  description: "",
  method: "url",
  url: "",
  content: "",
  files: [],
  tier: "moderate",
  strategy: "recursive",
  chunkSize: "1000",
  chunkOverlap: "100",
  owner: "",
  metadata: [],
};

/** Props of a part of the form. */
export interface PartProps {
  readonly draft: Draft;
  readonly problems: Problems;
  readonly set: (change: Partial<Draft>) => void;
}

/** What a person must correct before anything is sent. */
export function problemsOf(draft: Draft): Problems {
  const { name, description, method, url, content, files, chunkSize, chunkOverlap, metadata } = draft;
  const size = Number(chunkSize);
  const overlap = Number(chunkOverlap);
  const isMany = method === "file" && files.length > 1;
  const names = metadata.map((pair) => pair.name.trim());
  return {
    ...(name.trim() === "" && !isMany && { name: "Enter a name." }),
    ...(description.trim() === "" && { description: "Enter a description." }),
    ...(method === "url" &&
      !URL.canParse(url.trim()) && { url: "Enter a whole address, such as https://example.com/page." }),
    ...(method === "content" && content.trim() === "" && { content: "Enter a text." }),
    ...(method === "file" && files.length === 0 && { files: "Choose at least one file." }),
    ...(!(Number.isInteger(size) && size >= 1 && size <= 4000) && {
      chunkSize: "Enter a number from 1 to 4000.",
    }),
    ...(!(Number.isInteger(overlap) && overlap >= 0 && overlap < size) && {
      chunkOverlap: "Enter a number from 0 to less than the chunk size.",
    }),
    ...((names.includes("") || new Set(names).size < names.length) && {
      metadata: "Give every value a name of its own.",
    }),
  };
}

export function documentsOf(draft: Draft): readonly NewDocument[] {
  const { name, method, url, content, files, owner, metadata, tier, strategy } = draft;
  const body = {
    description: draft.description.trim(),
    collection_details: tier,
    settings: { strategy, chunkSize: Number(draft.chunkSize), chunkOverlap: Number(draft.chunkOverlap) },
    ...(owner.trim() !== "" && { owner_id: owner.trim() }),
    ...(metadata.length > 0 && {
      metadata: Object.fromEntries(metadata.map((pair) => [pair.name.trim(), pair.value])),
    }),
  };
  const title = name.trim();
  switch (method) {
    case "url":
      return [{ title, source: { url: url.trim() }, body }];
    case "content":
      return [{ title, source: { content }, body }];
    case "file":
      return files.map((file) => ({
        title: files.length > 1 ? titleOf(file) : title,
        source: { file },
        body,
      }));
  }
}

/** The name of a file without its extension. */
export function titleOf({ name }: File): string {
  return name.replace(/(.)\.[^.]{1,8}$/, "$1");
}
