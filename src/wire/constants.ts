// Values of the contract for code that validates nothing, such as the threads: importing them loads no schema library.

/** The retrieval tiers: the wire values of `collection_details`, each naming one collection of an account. */
export const TIERS = ["fastest", "moderate", "high_accuracy"] as const;

/** Longest title and description in characters. The specification sets no limit. */
export const TITLE_CHARS_MAX = 2000;
export const DESCRIPTION_CHARS_MAX = 10_000;
/** Longest `url` in characters that browsers and proxies accept. */
export const URL_CHARS_MAX = 8192;
/** Images of one question; each costs a model about as much as a page of text. */
export const IMAGES_MAX = 20;
/** Longest `owner_id` in characters. */
export const OWNER_CHARS_MAX = 256;

/** Media type of an e-mail. This service reads it together with its PDFs and images. */
export const MAIL_TYPE = "message/rfc822";

/** Most locations of a text. A search reads those of every document that it finds. */
export const LOCATIONS_MAX = 10_000;

/** Largest upload by default, in bytes (32 MB, the specification's limit for images). */
export const UPLOAD_BYTES_MAX = 32 * 1024 * 1024;

/** Characters of a document's description that a list shows. */
export const DESCRIPTION_CHARS = 200;

/** Ends the warning of a document of which some pages are still being read: the document is written again with their text. */
export const STILL_READ = "still being read.";
/** Window in tokens of a language model that the configuration does not describe: that of small local models. */
export const CONTEXT_TOKENS_DEFAULT = 8192;
