/** Where uploaded files are, as configured. */
export type FileStorage =
  | { readonly kind: "folder"; readonly path: string }
  | {
      readonly kind: "bucket";
      readonly bucket: string;
      /** Empty, or ends with a slash. */
      readonly prefix: string;
    };

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, and characters that need no escape in a key. */
const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9!_.*'()/-]{0,512}))?$/;

/** Returns why a text names no storage for files; undefined if it does. */
export function filesProblem(text: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(text)) return undefined;
  const prefix = BUCKET.exec(text)?.[2] ?? "";
  if (!BUCKET.test(text)) return "expected a folder, or a bucket such as s3://bucket/prefix";
  const parts = prefix.replace(/\/$/, "").split("/");
  return prefix !== "" && parts.some((part) => /^\.*$/.test(part))
    ? "expected a prefix without empty parts, `.` and `..`"
    : undefined;
}

/** Reports whether `service.files` names a bucket. */
export function isBucket(files: string | undefined): boolean {
  return files?.startsWith("s3://") === true;
}

/** Returns where an embedded service has uploaded files; undefined: in the state folder. */
export function filesOf(service: object): FileStorage | undefined {
  const { files } = service as { files?: string | undefined }; // a hosted service has none
  if (files === undefined) return undefined;
  const [, bucket, path = ""] = BUCKET.exec(files) ?? [];
  if (bucket === undefined) return { kind: "folder", path: files };
  const prefix = path === "" ? "" : `${path.replace(/\/$/, "")}/`;
  return { kind: "bucket", bucket, prefix };
}

/** Describes a storage for people. */
export function filesWords(storage: FileStorage): string {
  return storage.kind === "folder" ? storage.path : `s3://${storage.bucket}/${storage.prefix}`;
}
