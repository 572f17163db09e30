import { z } from "zod";
import type { SourceStatus } from "../wire/daemon-status.ts";
import { besideWords, searchableWords } from "../wire/file-state.ts";
import type { Reached } from "./caller.ts";
import type { KnownFiles } from "./known-files.ts";
import type { ToolOutput } from "./tool-result.ts";

/** Most folders per answer. */
const FOLDERS_MAX = 100;

/** Arguments of the tool `status`: none. */
export const StatusInput = z.object({});

/** Result of the tool `status`. */
export const StatusOutput = z.object({
  daemon: z.enum(["running", "stopped", "private"]).describe("private: not shown to this key."),
  folders: z.array(
    z.object({
      folder: z.string(),
      files: z.number(),
      searchable: z.number().describe("As they are on disk, by words at least."),
      reading: z.number().describe("The service is reading them."),
      waiting: z.number().describe("Not sent yet."),
      failed: z.number(),
      held: z.number().describe("Deletes that a person must approve."),
      problem: z.string().optional(),
    }),
  ),
});
export type StatusOutput = z.infer<typeof StatusOutput>;

/** Returns how far the folders of this machine are synced. Throws `service_unreachable` and the refusals of the key. */
export async function describeStatus(
  { service, daemon }: Reached,
  _files: KnownFiles,
  _input: object,
  signal: AbortSignal,
): Promise<ToolOutput<StatusOutput>> {
  await service.owners(signal, { limit: 1 });
  const status = await daemon?.status(signal);
  const data = {
    daemon: status !== undefined ? "running" : daemon === undefined ? "private" : "stopped",
    folders: (status?.sources ?? []).slice(0, FOLDERS_MAX).map(folderOf),
  } as const;
  const lines = data.folders.map(
    ({ folder, problem, held, ...counts }) =>
      `${folder}: ${[searchableWords(counts), ...besideWords([{ held }])].join(", ")}${problem === undefined ? "" : `. ${problem}`}`,
  );
  return { data, text: [DAEMON_TEXT[data.daemon], ...lines].join("\n") };
}

const DAEMON_TEXT = {
  running: "The service answers, and the daemon runs.",
  stopped: "The service answers. No daemon runs here: newer changes of files are not searchable.",
  private: "The service answers. This key does not see whether folders are synced.",
};

function folderOf(source: SourceStatus): StatusOutput["folders"][number] {
  const {
    path,
    files,
    searchable,
    reading,
    waiting,
    failed,
    held,
    holdReason,
    degraded,
    paused,
    unreadable,
    deletesRefused,
  } = source;
  const bad = besideWords([{ deletesRefused, unreadable }]).join(", ");
  const problem = holdReason ?? (paused ? "A person paused it." : bad || degraded);
  return {
    folder: path,
    files,
    searchable,
    reading,
    waiting,
    failed,
    held,
    ...(problem !== null && { problem }),
  };
}
