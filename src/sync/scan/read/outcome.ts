import type { LocatedText } from "../../../formats/markup/located-text.ts";
import type { Recipe, ScanEntry } from "../../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import type { DocumentFields } from "../../../formats/fields.ts";
import type { Container, NamedKind } from "../../../formats/kinds.ts";

interface DocumentFacts {
  /** SHA-256 of the raw bytes, lower-case hex. */
  readonly hash: string;
  readonly sizeBytes: number;
  /** The file when it was read; newer than the scan's entry if it changed in between. */
  readonly entry: ScanEntry;
  /** When the file was created; absent where the file system does not record it. */
  readonly createdMs?: number;
  /** The document's own metadata. Default: none. */
  readonly fields?: DocumentFields;
  readonly recipe: Recipe;
}

/** A file that was read: everything that is needed to create its resource. */
export type SourceDocument = DocumentFacts &
  /** `digest`: of the content, as `digestOf` gives it. */
  (
    | {
        readonly kind: "content";
        readonly content: string;
        readonly digest: string;
        /** Where the file has the parts of a converted text. Default: unknown. */
        readonly locations?: LocatedText["locations"];
      }
    | { readonly kind: "link"; readonly url: string }
    /** The bytes are not stored in memory; the upload streams them. */
    | { readonly kind: "file"; readonly mediaType: string }
  );

/** The result of reading a file. */
export type ReadOutcome =
  | { readonly kind: "document"; readonly document: SourceDocument }
  /**
   * Nothing for a knowledge base: the kind is not supported, or the file is empty and not text. The reason is for a
   * person.
   */
  | { readonly kind: "skipped"; readonly reason: string }
  /** The file cannot become a resource until it changes. The reason is for a person. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The file changed while it was read: check it again. */
  | { readonly kind: "torn" }
  /** No regular file has this name any more, or another one was opened. */
  | { readonly kind: "gone" }
  /** The file exists and cannot be read; the system's error code. */
  | { readonly kind: "unreadable"; readonly code: string };

/** Options of reading one file. */
export interface ReadOptions {
  /** Cancels the reading of a large file, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** The service reads PDFs and images in uploaded mails, so mails that contain some are uploaded. Default: false. */
  readonly uploadsMails?: boolean;
  /** Hash of the ledger for the upload that the service has of the file. While the hash is the same, the file stays an upload. */
  readonly uploadedHash?: string | undefined;
}

/** A file to read, with what its name says of its kind. */
export interface ReadRequest {
  readonly absolutePath: string;
  readonly entry: Pick<ScanEntry, "path">;
  readonly named: Exclude<NamedKind, { kind: "skipped" }>;
  readonly rules: Rules;
}

/** A document whose text must be extracted. */
export interface Enclosed {
  readonly kind: "enclosed";
  readonly container: Container;
  readonly named: Exclude<ReadRequest["named"], { kind: "link" }>;
  readonly facts: Omit<DocumentFacts, "recipe">;
}
