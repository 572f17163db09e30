import type { Container } from "../kinds.ts";

/** What the child process is asked. */
export interface ConversionRequest {
  readonly path: string;
  readonly container: Container;
  /** SHA-256 of the bytes, lower-case hex: another content is not read. */
  readonly hash: string;
  readonly sizeBytes: number;
  /** Longest text, in UTF-16 units. */
  readonly charsMax: number;
  /** Whether the attachments of a mail are read. Default: they are. */
  readonly withAttachments?: boolean;
}

/** What came of it. */
export type Conversion =
  /** The text as Markdown; empty where there is none. `title` is what the document calls itself. */
  | {
      readonly kind: "text";
      readonly title?: string;
      readonly markdown: string;
      /** A service that reads mails reads more of it: it has PDFs or images, and nothing that is read here alone. */
      readonly isBetterUploaded?: boolean;
    }
  /** An archive that is no document we know. */
  | { readonly kind: "unknown" }
  /** The file holds other bytes by now. */
  | { readonly kind: "changed" };

/** What one format's reader gives. */
export interface Reading {
  readonly title?: string | undefined;
  readonly markdown: string;
  /** White space around the text is part of it: it is the file's own. */
  readonly isExact?: boolean;
}

/** Why the child gave nothing: `refused` comes with words for a person, all others with a library's. */
export type ConversionFailure = "refused" | "deep" | "damaged" | "memory" | "unable";
