import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ledgerFile, openLedger } from "../../../../src/sync/ledger/ledger.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import { openTrash } from "../../../../src/sync/ledger/trash/trash.ts";
import { docx, wordParagraph } from "../../../formats/office-fixture.ts";
import { openWorld, until, type World } from "../../daemon/harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});

const KEEP = { trashDays: 7 };
type More = NonNullable<Parameters<World["sync"]>[0]>;
const sync = async (more: More = {}): Promise<void> => world.sync({ settings: KEEP, ...more });
const path = (name: string): string => join(world.root, name);
const read = (name: string): string => readFileSync(path(name), "utf8");
const back = async (name: string, atMs?: number) =>
  (await world.offline.undelete(path(name), atMs)).map((result) =>
    Object.assign({}, result, { path: result.path.slice(world.root.length + 1) }),
  );
const saved = (name?: string): string[] =>
  world.offline
    .trash(name === undefined ? undefined : path(name))
    .map((text) => text.path.slice(world.root.length + 1));
const sent = (from: number): string[] => world.service.requests.slice(from).map(({ operation }) => operation);
const trashFiles = (): string[] => {
  const folder = join(world.stateDir, "trash");
  // The note next to a text goes with it.
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const texts = names.filter((name) => !name.endsWith(".json"));
  expect(names.filter((name) => texts.includes(name.replace(".json", "")) || name.endsWith(".new"))).toEqual(
    names,
  );
  return texts;
};

describe("the text of a deleted file", () => {
  it("saves no text by default, and deletes with one request", async () => {
    world.write("a.txt", "text");
    world.write("b.txt", "text b");
    await world.sync();
    unlinkSync(path("a.txt"));
    const before = world.service.requests.length;
    await world.sync();
    expect(sent(before)).toEqual(["delete"]);
    expect([saved(), trashFiles()]).toEqual([[], []]);
  });

  it("saves a text durably for its owner alone before its resource is deleted, and restores the file", async () => {
    world.write("d/a.md", "# Alpha\r\n\r\nGrüße, with spaces at the end  \n\n");
    world.write("b.txt", "text b");
    await sync();
    const text = read("d/a.md");
    rmSync(path("d"), { recursive: true });
    const before = world.service.requests.length;
    let keptBefore: string[] = [];
    world.service.fault = ({ operation }) => {
      if (operation === "delete") keptBefore = trashFiles();
      return undefined;
    };
    await sync();
    expect(sent(before)).toEqual(["update", "delete"]);
    expect(keptBefore).toHaveLength(1);
    expect(statSync(join(world.stateDir, "trash", keptBefore[0] ?? "")).mode & 0o777).toBe(0o600);
    expect(statSync(join(world.stateDir, "trash")).mode & 0o777).toBe(0o700);

    expect(await back("d/a.md")).toMatchObject([{ outcome: "restored", isExact: true, title: "Alpha" }]);
    expect(read("d/a.md")).toBe(text);
    expect(statSync(path("d/a.md")).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(readdirSync(path("d"))).toEqual(["a.md"]);
    await sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["Alpha", "b.txt"]);
  });

  it("restores a text in another encoding as UTF-8, and reports it", async () => {
    world.write("latin.txt", Buffer.from("Stra\xdfe und Gr\xf6\xdfe, f\xfcr \xc4rzte\n", "latin1"));
    world.write("b.txt", "b");
    await sync();
    unlinkSync(path("latin.txt"));
    await sync();
    expect(await back("latin.txt")).toMatchObject([{ outcome: "restored", isExact: false }]);
    expect(read("latin.txt")).toBe("Straße und Größe, für Ärzte\n");
  });

  it("restores the extracted text of a document as Markdown next to its path", async () => {
    world.write("report.docx", docx(wordParagraph("Head", "heading1") + wordParagraph("Text.")));
    world.write("b.txt", "b");
    await sync();
    unlinkSync(path("report.docx"));
    await sync();
    expect(saved()).toEqual(["report.docx.md"]);
    expect(await back("report.docx")).toMatchObject([
      { outcome: "restored", isExact: false, path: "report.docx.md" },
    ]);
    expect(read("report.docx.md")).toBe("# Head\n\nText.");
    expect(existsSync(path("report.docx"))).toBe(false);
  });

  it("saves the bytes of an uploaded file", async () => {
    const bytes = Buffer.concat([Buffer.from("%PDF-1.4\n"), Buffer.alloc(700_000, "x")]);
    world.write("paper.pdf", bytes);
    world.write("b.txt", "b");
    await sync();
    unlinkSync(path("paper.pdf"));
    const before = world.service.requests.length;
    await sync();
    expect(sent(before)).toEqual(["download", "delete"]);
    expect(await back("paper.pdf")).toMatchObject([{ outcome: "restored", isExact: true, kind: "file" }]);
    expect(readFileSync(path("paper.pdf")).equals(bytes)).toBe(true);
  });

  it("saves the bytes that were sent of a file that was damaged before it was deleted", async () => {
    const bytes = "%PDF-1.4\nthe last good version";
    world.write("paper.pdf", bytes);
    world.write("b.txt", "b");
    await sync();
    world.write("paper.pdf", "damaged");
    await sync();
    unlinkSync(path("paper.pdf"));
    await sync();
    expect(await back("paper.pdf")).toMatchObject([{ outcome: "restored", isExact: true }]);
    expect(read("paper.pdf")).toBe(bytes);
  });

  it.each(["go.url", "go.webloc"])("saves the address of a shortcut: %s", async (name) => {
    const address = "https://example.com/?a=1&b=%3C";
    world.write(
      name,
      name.endsWith("url")
        ? `[InternetShortcut]\r\nIDList=\r\nURL=${address}\r\n`
        : `<plist><dict><key>URL</key><string>${address.replace("&", "&amp;")}</string></dict></plist>`,
    );
    world.write("b.txt", "b");
    await sync();
    unlinkSync(path(name));
    const before = world.service.requests.length;
    await sync();
    expect(sent(before)).toEqual(["delete"]);
    expect(await back(name)).toMatchObject([{ outcome: "restored", isExact: false, kind: "link" }]);
    await sync();
    expect(world.service.live().map(({ url }) => url)).toContain(address);
  });

  it("saves no text of a file that still exists and is only excluded by the rules", async () => {
    for (const name of ["a.txt", "b.txt", "c.log"]) world.write(name, name);
    await sync();
    const before = world.service.requests.length;
    await sync({ sources: [world.source({ exclude: ["*.log"] })] });
    expect(sent(before)).toEqual(["delete"]);
    expect(saved()).toEqual([]);
  });

  it.each([
    ["a file has", () => writeFileSync(path("d"), "now a file")],
    ["a link that leads to itself has", () => symlinkSync("d", path("d"))],
  ])("saves a text when %s taken the place of its folder", async (_name, take) => {
    world.write("d/a.txt", "text a");
    world.write("b.txt", "text b");
    await sync();
    rmSync(path("d"), { recursive: true });
    take();
    await sync();
    expect(saved()).toEqual(["d/a.txt"]);
    expect(world.service.live().filter(({ title }) => title === "a.txt")).toEqual([]);
  });

  it("saves a text once despite a crash between saving and deleting", async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await sync();
    unlinkSync(path("a.txt"));
    for (let crashAt = 1; crashAt <= 12; crashAt += 1) {
      let effects = 0;
      const step = (): void => {
        effects += 1;
        if (effects >= crashAt) throw new Error("crash");
      };
      await sync({ step }).catch(() => undefined);
      // Either the resource exists, or its text is saved.
      expect(world.service.live().length === 2 || saved().length === 1).toBe(true);
    }
    await sync();
    expect([saved(), world.service.live().length]).toEqual([["a.txt"], 1]);
    expect(trashFiles()).toHaveLength(1);
    expect(await back("a.txt")).toMatchObject([{ outcome: "restored" }]);
  });
});

describe("a text that cannot be saved", () => {
  beforeEach(async () => {
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await sync();
    unlinkSync(path("a.txt"));
  });
  const troubled = () => readStatus(world.stateDir, 10)?.troubled;

  it("delays a delete whose text cannot be saved, but carries it out after some attempts", async () => {
    world.service.fault = ({ operation }) =>
      operation === "update"
        ? { kind: "answer", status: 422, body: '{"success":false,"message":"read only"}' }
        : undefined;
    for (let tries = 7; tries > 0; tries -= 1) {
      await sync();
      expect(world.service.live()).toHaveLength(2);
      expect(troubled()).toMatchObject([
        { path: "a.txt", message: expect.stringContaining(`read only; ${tries} more`) as string },
      ]);
    }
    await sync();
    expect([world.service.live().length, saved()]).toEqual([1, []]);
    expect(world.activity.at(-1)).toMatchObject({
      action: "delete",
      outcome: "done",
      message: "deleted without saving its text: read only",
    });
    expect(troubled()).toEqual([]);
  });

  it("delays a delete while the disk does not accept its text", async () => {
    writeFileSync(join(world.stateDir, "trash"), "in the way");
    for (let pass = 0; pass < 9; pass += 1) await sync();
    expect(world.service.live()).toHaveLength(2);
    expect(troubled()).toMatchObject([
      { path: "a.txt", message: expect.stringContaining("cannot be saved") as string },
    ]);
    unlinkSync(join(world.stateDir, "trash"));
    await sync();
    expect([world.service.live().length, saved()]).toEqual([1, ["a.txt"]]);
  });

  it("deletes at once when the service has no such resource", async () => {
    for (const resource of world.service.resources.values())
      if (resource.title === "a.txt") resource.isDeleted = true;
    await sync();
    expect([saved(), troubled()]).toEqual([[], []]);
  });

  it("stops asking for a text when the configuration disables the trash", async () => {
    world.service.fault = ({ operation }) =>
      operation === "update" ? { kind: "answer", status: 422, body: '{"success":false}' } : undefined;
    await sync();
    expect(world.service.live()).toHaveLength(2);
    await world.sync();
    expect(world.service.live()).toHaveLength(1);
  });
});

describe("an upload that is not given back as it was sent", () => {
  it.each([
    { name: "gone", change: () => world.service.uploads.clear() },
    {
      name: "another one",
      change: () => {
        for (const file of world.service.uploads.values()) file.content = Buffer.alloc(file.bytes, "y");
      },
    },
    {
      name: "longer",
      change: () => {
        for (const file of world.service.uploads.values())
          file.content = Buffer.concat([file.content, file.content]);
      },
    },
    {
      name: "shorter",
      change: () => {
        for (const file of world.service.uploads.values()) file.content = file.content.subarray(1);
      },
    },
  ])("saves no upload that differs from what was sent: $name", async ({ change }) => {
    world.write("a.pdf", "%PDF-1.4\nsome bytes");
    world.write("b.txt", "b");
    await sync();
    unlinkSync(path("a.pdf"));
    change();
    await sync();
    expect([world.service.live().length, saved(), trashFiles()]).toEqual([2, [], []]);
    for (let pass = 0; pass < 7; pass += 1) await sync();
    expect([world.service.live().length, saved(), trashFiles()]).toEqual([1, [], []]);
  });
});

it.each([
  { name: "an upload", path: "a.pdf", bytes: "%PDF-1.4\nsome bytes" },
  { name: "a text", path: "a.txt", bytes: "some text" },
])(
  "saves the exact bytes of $name that only its marker shows, because the ledger was lost",
  async ({ path: name, bytes }) => {
    world.write(name, bytes);
    world.write("b.txt", "b");
    await sync();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(ledgerFile(world.stateDir) + suffix, { force: true });
    unlinkSync(path(name));
    await sync();
    expect(world.service.live()).toMatchObject([{ title: "b.txt" }]);
    const [gone] = world.offline.trash();
    expect(gone?.isExact).toBe(true);
    const [file = ""] = trashFiles();
    expect(readFileSync(join(world.stateDir, "trash", file), "utf8")).toBe(bytes);
  },
);

it.each([
  ["upload", "a.pdf", "%PDF-1.4\nsome bytes"],
  ["shortcut", "a.url", "[InternetShortcut]\nURL=https://example.com/\n"],
])("saves no %s without an address in the ledger, and reports it", async (_, name, text) => {
  world.write(name, text);
  world.write("b.txt", "b");
  await sync();
  const ledger = new Database(ledgerFile(world.stateDir));
  expect(ledger.prepare("UPDATE files SET file_url = NULL WHERE path = ?").run(name).changes).toBe(1);
  ledger.close();
  unlinkSync(path(name));
  await sync();
  expect(readStatus(world.stateDir, 10)?.troubled).toMatchObject([
    { path: name, message: expect.stringContaining("its address is not known; 7 more tries") as string },
  ]);
  expect([world.service.live().length, saved(), trashFiles()]).toEqual([2, [], []]);
});

it("fetches an upload with an outdated port from the service's current address", async () => {
  world.write("a.pdf", "%PDF-1.4\nsome bytes");
  world.write("b.txt", "b");
  await sync();
  const ledger = new Database(ledgerFile(world.stateDir));
  ledger
    .prepare("UPDATE files SET file_url = replace(file_url, ?, 'http://localhost:1')")
    .run(world.service.url);
  const url = ledger.prepare("SELECT file_url FROM files WHERE file_url IS NOT NULL").pluck().get();
  ledger.close();
  expect(url).toMatch(/^http:\/\/localhost:1\/files\//);
  unlinkSync(path("a.pdf"));
  await sync();
  expect([saved(), world.service.live().length]).toEqual([["a.pdf"], 1]);
});

it("delays only the delete of an upload whose host does not answer", async () => {
  world.write("a.pdf", "%PDF-1.4\nsome bytes");
  world.write("b.txt", "b");
  world.write("c.txt", "c");
  await sync();
  const ledger = new Database(ledgerFile(world.stateDir));
  ledger.exec("UPDATE files SET file_url = 'http://files.invalid/a.pdf' WHERE file_url IS NOT NULL");
  ledger.close();
  unlinkSync(path("a.pdf"));
  unlinkSync(path("b.txt"));
  await sync();
  expect([saved(), world.service.live().length]).toEqual([["b.txt"], 2]);
  expect(readStatus(world.stateDir, 10)?.troubled).toMatchObject([{ path: "a.pdf" }]);
});

describe("undelete", () => {
  beforeEach(async () => {
    for (const name of ["d/1.txt", "d/e/2.txt", "top.txt", "stays.txt"]) world.write(name, `text of ${name}`);
    await sync();
    rmSync(path("d"), { recursive: true });
    unlinkSync(path("top.txt"));
    await sync();
  });

  it("lists all saved texts, those of a folder, and that of a file", () => {
    expect(saved().toSorted()).toEqual(["d/1.txt", "d/e/2.txt", "top.txt"]);
    expect(saved("d").toSorted()).toEqual(["d/1.txt", "d/e/2.txt"]);
    expect(saved("top.txt")).toEqual(["top.txt"]);
    expect(saved("stays.txt")).toEqual([]);
    const [text] = world.offline.trash(path("top.txt"));
    const days = (Date.parse(text?.until ?? "") - Date.parse(text?.deletedAt ?? "")) / 86_400_000;
    expect([text?.sizeBytes, days]).toEqual([15, 7]);
  });

  it("restores everything below a folder", async () => {
    expect((await back("d")).map(({ outcome }) => outcome)).toEqual(["restored", "restored"]);
    expect([read("d/1.txt"), read("d/e/2.txt")]).toEqual(["text of d/1.txt", "text of d/e/2.txt"]);
    await sync();
    expect(world.service.live()).toHaveLength(3);
  });

  it("never overwrites an existing file", async () => {
    world.write("d/1.txt", "a new one");
    expect((await back("d")).map(({ path: name, outcome }) => `${name} ${outcome}`).toSorted()).toEqual([
      "d/1.txt exists",
      "d/e/2.txt restored",
    ]);
    expect(read("d/1.txt")).toBe("a new one");
    symlinkSync("nowhere", path("top.txt"));
    expect(await back("top.txt")).toMatchObject([{ outcome: "exists" }]);
  });

  it("restores the text of a given time", async () => {
    world.write("top.txt", "the second text");
    await sync();
    unlinkSync(path("top.txt"));
    await sync();
    const [newest, older] = world.offline.trash(path("top.txt"));
    await back("top.txt");
    expect(read("top.txt")).toBe("the second text");
    unlinkSync(path("top.txt"));
    await back("top.txt", Date.parse(older?.deletedAt ?? ""));
    expect(read("top.txt")).toBe("text of top.txt");
    expect(Date.parse(newest?.deletedAt ?? "")).toBeGreaterThan(Date.parse(older?.deletedAt ?? ""));
    await expect(back("top.txt", 1)).rejects.toThrow(/the trash has no text of .*top.txt from 1970/);
  });

  it("explains why it restores nothing: no text, outside of every source, missing folder", async () => {
    await expect(back("stays.txt")).rejects.toMatchObject({ code: "not_kept" });
    await expect(world.offline.undelete("/elsewhere/a.txt")).rejects.toMatchObject({
      code: "outside_sources",
    });
    renameSync(world.root, `${world.root}-away`);
    await expect(back("top.txt")).rejects.toMatchObject({ code: "source_missing" });
    expect(existsSync(world.root)).toBe(false);
  });

  it("does not restore through a link that leads out of the source", async () => {
    const outside = `${world.root}-outside`;
    mkdirSync(outside);
    symlinkSync(outside, path("d"));
    expect((await back("d")).map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
    expect(readdirSync(outside)).toEqual([]);
  });

  it("does not restore a damaged text", async () => {
    for (const name of trashFiles()) writeFileSync(join(world.stateDir, "trash", name), "damaged");
    expect(await back("top.txt")).toMatchObject([
      { outcome: "failed", reason: expect.stringContaining("is damaged") as string },
    ]);
    expect(existsSync(path("top.txt"))).toBe(false);
  });

  it("restores while a daemon runs, which creates the resource again", async () => {
    const daemon = world.daemon({ settings: KEEP });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().idle);
    await back("top.txt");
    await until(() => world.service.live().some(({ title }) => title === "top.txt") && daemon.status().idle);
    stop.abort();
    await ended;
  });

  it("restores files with unusual names", async () => {
    const name = "new\nline 'quote' \u00e9 e\u0301.txt";
    world.write(name, "odd");
    await sync();
    unlinkSync(path(name));
    await sync();
    expect(await back(name)).toMatchObject([{ outcome: "restored" }]);
    expect(read(name)).toBe("odd");
  });
});

describe("saved texts whose ledger was lost", () => {
  const remember = async (): Promise<void> => {
    world.write("a.txt", "text a");
    world.write("stays.txt", "stays");
    await sync();
    unlinkSync(path("a.txt"));
    await sync();
    expect(saved()).toEqual(["a.txt"]);
    for (const end of ["", "-wal", "-shm"]) rmSync(`${ledgerFile(world.stateDir)}${end}`, { force: true });
  };

  it("finds texts of a lost ledger in the next pass and restores them", async () => {
    await remember();
    await sync();
    await until(() => saved().length === 1);
    expect(await back("a.txt")).toMatchObject([{ outcome: "restored", path: "a.txt" }]);
    expect(read("a.txt")).toBe("text a");
  });

  it("retains texts of an unconfigured source until they expire", async () => {
    await remember();
    const folder = join(world.stateDir, "trash");
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), 1, 1);
    const ledger = openLedger(world.stateDir, world.service.url);
    const nothing = (): Promise<never> => Promise.reject(new Error("no request"));
    const trash = openTrash({
      stateDir: world.stateDir,
      days: 7,
      ledger,
      remote: { take: nothing, download: nothing },
    });
    await trash.prune();
    ledger.close();
    expect(trashFiles()).toHaveLength(1);
  });
});

describe("pruning", () => {
  /** The trash of the state folder, without a daemon. */
  const withTrash = async (bytesMax: number, use: (trash: ReturnType<typeof openTrash>) => Promise<void>) => {
    const ledger = openLedger(world.stateDir, world.service.url);
    const nothing = (): Promise<never> => Promise.reject(new Error("no request"));
    const remote = { take: nothing, download: nothing };
    try {
      await use(openTrash({ stateDir: world.stateDir, days: 7, ledger, remote, bytesMax }));
    } finally {
      ledger.close();
    }
  };
  const remember = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) world.write(`${index}.txt`, "x".repeat(100));
    world.write("stays.txt", "stays");
    await sync();
    for (let index = 0; index < count; index += 1) {
      unlinkSync(path(`${index}.txt`));
      await sync();
    }
  };

  it("evicts the oldest texts above the size limit, file and row", async () => {
    await remember(4);
    await withTrash(250, (trash) => trash.prune());
    expect(saved()).toEqual(["3.txt", "2.txt"]);
    expect(trashFiles()).toHaveLength(2);
  });

  it("removes expired texts when the daemon starts, even with the trash disabled", async () => {
    world.write("a.txt", "a");
    world.write("b.txt", "b");
    await world.sync({ settings: { trashDays: 0.000_001 } });
    unlinkSync(path("a.txt"));
    await world.sync({ settings: { trashDays: 0.000_001 } });
    expect(saved()).toEqual(["a.txt"]);
    await until(() => Date.now() > Date.parse(world.offline.trash()[0]?.until ?? ""));
    await world.sync();
    await until(() => trashFiles().length === 0);
    expect(saved()).toEqual([]);
  });

  it("retains a text for its original days after the setting is lowered", async () => {
    await remember(1);
    await world.sync();
    expect([saved().length, trashFiles().length]).toEqual([1, 1]);
  });

  it("removes old files without a row", async () => {
    await remember(1);
    const folder = join(world.stateDir, "trash");
    writeFileSync(join(folder, "stray"), "left by a crash");
    writeFileSync(join(folder, "half.new"), "left by a crash");
    await withTrash(1000, (trash) => trash.prune());
    expect(trashFiles()).toHaveLength(3);
    for (const name of ["stray", "half.new"]) utimesSync(join(folder, name), 1, 1);
    await withTrash(1000, (trash) => trash.prune());
    expect(trashFiles()).toHaveLength(1);
    expect(saved()).toEqual(["0.txt"]);
  });
});
