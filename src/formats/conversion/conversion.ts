import type { LocatedText } from "../markup/located-text.ts";
import type { DocumentFields } from "../fields.ts";
import type { Container } from "../kinds.ts";

/** A request to the child process. */
export type ConversionRequest = (WholeFile | EnclosedDocument) & {
  readonly path: string;
  readonly container: Container;
  /** Longest text, in UTF-16 units. */
  readonly charsMax: number;
  /** Whether to read the attachments of a mail. Default: true. */
  readonly withAttachments?: boolean;
};

interface WholeFile {
  readonly content?: undefined;
  /** SHA-256 of the bytes, lower-case hex. Other content is not read. */
  readonly hash: string;
  readonly sizeBytes: number;
}

/** A document that is part of the file. */
interface EnclosedDocument {
  readonly content: Uint8Array;
}

/** The answer of the child process. */
export type Conversion =
  /** The text as Markdown, empty if there is none. `title` is the document's own. */
  | {
      readonly kind: "text";
      readonly title?: string;
      readonly markdown: string;
      /** Where the file has the parts of the text. Default: unknown. */
      readonly locations?: LocatedText["locations"];
      readonly fields?: DocumentFields;
      /** A service that reads mails reads more of this one: it has PDFs or images, and nothing that only kbsync reads. */
      readonly isBetterUploaded?: boolean;
    }
  /** An archive that is not a known document. */
  | { readonly kind: "unknown" }
  /** The file's bytes have changed. */
  | { readonly kind: "changed" };

/** The result of one format's reader. */
export interface Reading extends LocatedText {
  readonly title?: string | undefined;
  /** The document's own metadata. Default: none. */
  readonly fields?: DocumentFields;
  /** White space around the text belongs to it, because it comes from the file. */
  readonly isExact?: boolean;
}

/** Why the child process returned nothing. The message of `refused` is for a person; the others come from a library. */
export type ConversionFailure = "refused" | "deep" | "damaged" | "memory" | "unable";
