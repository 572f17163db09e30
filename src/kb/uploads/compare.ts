import type { KnownUpload, ReadUploads } from "../store/maintenance.ts";

/** Something that may be wrong with an upload. */
export interface Suspicion {
  readonly upload: KnownUpload;
  readonly message: string;
}

/** The result of a comparison of a storage with the store that names its files. */
export interface Comparison {
  /** By token. */
  readonly wrong: readonly Suspicion[];
  /** Names in the storage that the store does not know. */
  readonly unknown: readonly string[];
  /** Uploads that the store knows. */
  readonly known: number;
}

/** A storage of files at one moment. */
export interface Inspection {
  readonly suspicions: readonly Suspicion[];
  /** Names of complete files. */
  readonly names: readonly string[];
}

/**
 * Compares a storage with a store while services use both. A file is only wrong if the store knew it before and after the storage was
 * inspected, and only unknown if it knew it at neither time: rows and files come and go meanwhile.
 */
export async function compareUploads(
  readUploads: ReadUploads,
  inspect: (known: readonly KnownUpload[]) => Promise<Inspection>,
): Promise<Comparison> {
  const before = await readUploads();
  const { suspicions, names } = await inspect(before);
  const tokens = new Set((await readUploads()).map(({ token }) => token));
  const wrong = suspicions.filter(({ upload }) => tokens.has(upload.token));
  for (const { token } of before) tokens.add(token);
  return { wrong, unknown: names.filter((name) => !tokens.has(name)), known: before.length };
}
