/** Path of a folder below a source's root, spelled as a RelativePath; "" is the root itself. */
export type FolderPath = string;
