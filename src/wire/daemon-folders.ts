import { z } from "zod";
import { OWNER_CHARS_MAX } from "./constants.ts";
import { Tier } from "./primitives.ts";
import { list, record } from "./records.ts";

/** The operations of a daemon that change which folders it syncs. */

/** Longest path of Linux (PATH_MAX). */
const PATH_CHARS_MAX = 4096;
/** Globs of a new folder; the configuration takes more. */
const GLOBS_MAX = 100;
const Globs = list(z.string().min(1).max(1000)).refine((globs) => globs.length <= GLOBS_MAX, {
  message: `at most ${GLOBS_MAX} globs`,
});

/** A folder to sync. */
export const NewFolder = z.strictObject({
  /** Absolute, or below the home folder of the daemon's user as `~/…`. */
  path: z
    .string()
    .max(PATH_CHARS_MAX)
    .regex(/^(?:\/|~\/|~$)[^\0]*$/, "an absolute path, or one that begins with ~/"),
  tier: Tier.optional(),
  ownerId: z.string().min(1).max(OWNER_CHARS_MAX).optional(),
  include: Globs.optional(),
  exclude: Globs.optional(),
});
export type NewFolder = z.infer<typeof NewFolder>;

/** Files of one kind: `pdf`, `image`, `office`, `link`, or a format of text such as `markdown`. */
const FilesOfKind = record({ kind: z.string(), files: z.number(), bytes: z.number() });

/** The paths that one rule leaves out. */
export const LeftOut = record({
  reason: z.string(),
  files: z.number(),
  /** Folders that are not entered, each with everything in it. */
  folders: z.number(),
  /** One of them, relative to the folder. */
  example: z.string(),
});
export type LeftOut = z.infer<typeof LeftOut>;

/** An estimate of a folder by names and sizes. No file is read, so a few of those counted may still turn out to be no text. */
export const FolderContents = record({
  /** Files that would be taken. */
  files: z.number(),
  bytes: z.number(),
  /** Most files first. */
  kinds: list(FilesOfKind),
  /** Paths of the first files that would be taken, by name. */
  first: list(z.string()),
  /** Most first; rules beyond the largest are summed up in the last one. */
  leftOut: list(LeftOut),
  /** Paths that cannot be read, and the first of them ("" is the folder itself). */
  unreadable: z.number(),
  unreadablePaths: list(z.string()),
  /** False: the count ended at its bound of time or of files, so there is more than this. */
  complete: z.boolean(),
});
export type FolderContents = z.infer<typeof FolderContents>;

/** Why the folders of a daemon cannot be changed from here, and what a person can do instead. */
const Obstacle = record({ message: z.string(), hint: z.string() });
export type Obstacle = z.infer<typeof Obstacle>;

/** Adds a folder to the configuration. */
export const AddFolder = NewFolder.extend({
  /** Changes nothing; the answer says what would, and what would be taken. */
  dryRun: z.boolean().default(false),
});
export type AddFolder = z.infer<typeof AddFolder>;

/** What would be taken of a folder that is not synced yet. */
export const FolderPreview = FolderContents.unwrap()
  .extend({
    /** Where a path with symbolic links leads; null: it has none. */
    realPath: z.string().nullable(),
    tier: Tier,
    ownerId: z.string(),
    /** Documents that the folder still has from before it was removed; adding it takes them up again. */
    documents: z.number(),
  })
  .readonly();
export type FolderPreview = z.infer<typeof FolderPreview>;

/** The changes. The daemon starts again on the new configuration at once, within its process. */
const ChangedFolder = {
  path: z.string(),
  /** The configuration that was written, or would be; null: there is none. */
  file: z.string().nullable(),
  /** Whatever else differs in the configuration since the daemon read it, and takes effect now. */
  applied: list(z.string()),
  /** Why the configuration cannot be changed; null: it can. */
  obstacle: Obstacle.nullable(),
};
export const FolderAdded = record({
  ...ChangedFolder,
  /** Null unless `dryRun`. */
  preview: FolderPreview.nullable(),
});
export type FolderAdded = z.infer<typeof FolderAdded>;

/** Removes a folder from the configuration. `documents` says what becomes of its documents; the files stay. */
export const RemoveFolder = z.strictObject({
  folder: z
    .string()
    .max(PATH_CHARS_MAX)
    .regex(/^\/[^\0]*$/, "an absolute path"),
  documents: z.enum(["keep", "delete"]),
  /** Changes nothing; the answer says what would. */
  dryRun: z.boolean().default(false),
});
export type RemoveFolder = z.infer<typeof RemoveFolder>;

export const FolderRemoved = record({
  ...ChangedFolder,
  /** Documents that the folder has at the service. */
  documents: z.number(),
});
export type FolderRemoved = z.infer<typeof FolderRemoved>;
