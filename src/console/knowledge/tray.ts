import { signal } from "@preact/signals";
import type { ResourceAnswer } from "../../wire/resource.ts";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { uploadFile } from "./upload.ts";

/** A new document, as the body of a create without its text. */
export interface NewDocument {
  readonly title: string;
  /** The file to upload, or the rest of the body. */
  readonly source: { readonly file: File } | { readonly url: string } | { readonly content: string };
  readonly body: object;
}

/** A document that is being sent. */
export interface TrayItem {
  readonly key: string;
  readonly document: NewDocument;
  readonly state: "waiting" | "uploading" | "reading" | "done" | "failed";
  /** Uploaded part, from 0 to 1. */
  readonly part: number;
  readonly error?: unknown;
  readonly id?: string;
  readonly warning?: string | undefined;
}

/** Documents that were added in this tab, newest last. They stay while a person looks at other pages. */
export const tray = signal<readonly TrayItem[]>([]);

/** Documents sent at a time. */
const AT_ONCE = 3;
let working = 0;

addEventListener("beforeunload", (event) => {
  if (tray.peek().some(({ state }) => state === "uploading" || state === "waiting")) event.preventDefault();
});

/** Adds documents; each is sent independently. */
export function addToTray(documents: readonly NewDocument[]): void {
  const items = documents.map((document): TrayItem => ({
    key: crypto.randomUUID(),
    document,
    state: "waiting",
    part: 0,
  }));
  tray.value = [...tray.value, ...items];
  fill();
}

/** Tries a failed one again. What was uploaded is recognised by its key. */
export function retryItem(key: string): void {
  change(key, { state: "waiting", error: undefined, part: 0 });
  fill();
}

/** Forgets those that are done. */
export function clearDone(): void {
  tray.value = tray.value.filter(({ state }) => state !== "done");
}

function fill(): void {
  while (working < AT_ONCE) {
    const next = tray.peek().find(({ state }) => state === "waiting");
    if (next === undefined) return;
    working += 1;
    change(next.key, { state: "uploading" });
    void add(next).finally(() => {
      working -= 1;
      fill();
    });
  }
}

async function add({ key, document }: TrayItem): Promise<void> {
  const { title, source, body } = document;
  try {
    const text =
      "file" in source
        ? { url: await uploadFile(source.file, `${key}-file`, (part) => change(key, { part })) }
        : source;
    change(key, { state: "reading", part: 1 });
    const { data } = await ask<ResourceAnswer>(ROUTES.resource, {
      method: "POST",
      body: { ...body, title, ...text },
      headers: { [IDEMPOTENCY_HEADER]: key },
    });
    change(key, { state: "done", id: data._id, warning: data.metadata?.warning });
  } catch (error) {
    change(key, { state: "failed", error });
  }
}

function change(key: string, facts: Partial<TrayItem>): void {
  tray.value = tray.value.map((item) => (item.key === key ? { ...item, ...facts } : item));
}
