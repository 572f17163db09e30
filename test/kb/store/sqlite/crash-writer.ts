import { pathToFileURL } from "node:url";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { createEmbedded, updateEmbedded, type Embedded } from "../embedded.ts";

// The process that crash.test.ts kills. It creates, updates and deletes resources concurrently until it is killed, and
// prints `begin N` before and `done N VERSION|gone` after each write.

const NOW = "2026-01-01T00:00:00.000Z";
/** Concurrent writers, so that writes share transactions. */
const LANES = 8;

export function crashId(resource: number): string {
  return resource.toString(16).padStart(24, "0");
}

/** Text of a version of a resource. Each paragraph, which is a chunk, names both. */
export function contentOf(resource: number, version: number): string {
  const paragraph = `This is text v${resource}x${version} of a resource, with words to index.`;
  return Array.from({ length: 1 + ((resource + version) % 7) }, () => paragraph).join("\n\n");
}

async function write(path: string, round: number): Promise<void> {
  const store = await openSqliteStore({ path });
  const account = await store.records.ensureAccount("local");
  const lane = async (number: number): Promise<void> => {
    for (let step = 0; ; step++) {
      const resource = 1 + round * 100_000 + number * 10_000 + step;
      const at = { accountId: account.id, id: crashId(resource) };
      const say = (what: string): void => void process.stdout.write(`${what}\n`);
      say(`begin ${resource}`);
      const content = contentOf(resource, 1);
      const rest = { ownerId: "ann", origin: "content", title: "Crash", description: "", url: null } as const;
      const created = {
        ...at,
        ...rest,
        tier: "moderate",
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
        metadata: { step, parity: step % 2 === 0 },
      } as const;
      await createEmbedded(store, created, chunkingOf(content));
      say(`done ${resource} 1`);
      if (step % 3 === 1) {
        say(`begin ${resource}`);
        const newer = contentOf(resource, 2);
        const change = { ...at, content: newer, metadata: { step, newer: [1, 2] }, nowIso: NOW };
        await updateEmbedded(store, change, chunkingOf(newer));
        say(`done ${resource} 2`);
      }
      if (step % 5 === 4) {
        say(`begin ${resource}`);
        await store.records.deleteResource({ ...at, nowIso: NOW });
        say(`done ${resource} gone`);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
}

function chunkingOf(content: string): Embedded {
  let start = 0;
  const spans = content.split("\n\n").map((paragraph) => {
    const span = { start, end: start + paragraph.length, headings: [] };
    start = span.end + 2;
    return span;
  });
  return { spans, vectors: spans.map(() => Float32Array.of(0.6, 0.8)), fingerprint: "m" };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await write(process.argv[2] ?? "", Number(process.argv[3]));
}
