import { join } from "node:path";
import { openSqliteStore } from "../../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS } from "../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../kb/store/store-fixture.ts";
import { mountDisk } from "./mount.ts";

// Deletes documents from a store on a full disk on which SQLite's temporary files lie as well, and prints how each fared. A
// program of its own: SQLite asks for their place once in a process.

const SIZES = [16_000, 1_000_000, 2_000_000];

const disk = mountDisk({ sizeKib: 96 * 1024 });
process.env["SQLITE_TMPDIR"] = disk.path;
const store = await openSqliteStore({ path: join(disk.path, "kb.sqlite") });
try {
  const { id: accountId } = await store.records.ensureAccount("local");
  const idOf = (at: number): string => at.toString(16).padStart(24, "0");
  for (const [at, chars] of SIZES.entries()) {
    const content = `text ${at} `.repeat(chars / 7);
    await store.records.createResource(
      {
        accountId,
        id: idOf(at),
        tier: "fastest",
        ownerId: "ann",
        origin: "content",
        title: `title ${at}`,
        description: "",
        url: null,
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
      },
      wordsOnly(content),
    );
  }
  disk.fill();
  const outcomes: string[] = [];
  for (const at of SIZES.keys()) {
    const deleting = store.records.deleteResource({ accountId, id: idOf(at), nowIso: NOW });
    outcomes.push(await deleting.then(() => "deleted", String));
  }
  process.stdout.write(JSON.stringify(outcomes));
} finally {
  await store.close();
  disk.unmount();
}
