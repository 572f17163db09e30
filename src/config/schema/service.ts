import { z } from "zod";
import { filesProblem } from "./files.ts";

/** An address without slashes at its end. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: "expected an http or https address" })
  .transform((text) => text.replace(/\/+$/, ""));

/** Default address of the embedded service, reachable from this machine only. */
const HOST_DEFAULT = "127.0.0.1";
/** Default port of the embedded service. */
export const PORT_DEFAULT = 7411;

/** Schema of a `service` that runs in this process. */
export const EmbeddedService = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(255)
    .default(HOST_DEFAULT)
    .describe(
      "Address to listen on. One that is not loopback opens the service to other machines, `0.0.0.0` to all that reach this one. Then publicUrl and requireKey are required, and keys and documents travel unencrypted unless a proxy adds TLS.",
    ),
  port: z.int().min(0).max(65535).default(PORT_DEFAULT).describe("0 takes any free port."),
  publicUrl: HttpUrl.optional().describe(
    "Address by which clients reach the service, for example that of a proxy; addresses of uploaded files begin with it. One that is not loopback means that other machines reach the service: requireKey is required. Default: the address it listens on.",
  ),
  // `environment.ts` checks the address: a message of the schema would quote it, and it may contain a password.
  database: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Address of a PostgreSQL database for the records and the index, without a password: `postgres://kbsync@db.example/kbsync`. Several processes may use one database. Default: an SQLite file in stateDir. The environment variable KBSYNC_DATABASE is used instead when set.",
    ),
  databasePasswordFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File that holds the password of the database; relative to the configuration file. Default: no password, or the one of PGPASSWORD or ~/.pgpass.",
    ),
  files: z
    .string()
    .min(1)
    .max(4096)
    .superRefine((text, context) => {
      const message = filesProblem(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .optional()
    .describe(
      "Where uploaded files are: a folder, relative to the configuration file, or an S3-compatible bucket, `s3://bucket/prefix`. Several processes may use one place. Default: a folder in stateDir.",
    ),
  requireKey: z
    .boolean()
    .optional()
    .describe(
      "Serve uploaded files only to keys of their account. Default: false, the address with its 256 random bits suffices, as at the hosted service. Required if host or publicUrl opens the service to other machines.",
    ),
});

/** Schema of a `service` elsewhere. */
export const HostedService = z.strictObject({
  apiUrl: HttpUrl.describe("Main host: uploads and search."),
  dbUrl: HttpUrl.describe("Host that stores resources."),
  resourcesUrl: HttpUrl.describe("Host that serves uploaded files."),
  pauthkeyFile: z
    .string()
    .min(1)
    .optional()
    .describe("File that holds the key. The environment variable KBSYNC_PAUTHKEY is used instead when set."),
});
