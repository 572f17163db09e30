import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { FakeRequest } from "../../fakes/knowledge-service.ts";
import { until } from "../daemon/harness.ts";
import { openFollowed, type Followed } from "./followed.ts";

let followed: Followed;
afterEach(async () => {
  await followed.end();
});

/** Gives a file another one's times, to the nanosecond. */
function sameTimes(from: string, to: string): void {
  expect(spawnSync("touch", ["-r", from, to]).status).toBe(0);
}

describe("slow writers", () => {
  it("a file that is written for 3 s is sent once, as it ends", async () => {
    // Ten pauses of the writer: on a busy machine one of them takes several times as long, and the file would rest meanwhile.
    followed = await openFollowed({ "a.txt": "a" }, { settleMs: 1000 });
    const { world, agrees, sent, at } = followed;
    const script = "i=0; while [ $i -lt 30 ]; do echo line $i >> slow.txt; sleep 0.1; i=$((i+1)); done";
    const writer = spawn("sh", ["-c", script], { cwd: world.root });
    await once(writer, "exit");
    await agrees();
    expect(sent()).toEqual({ create: 1 });
    expect(statSync(at("slow.txt")).size).toBeGreaterThan(200);
  });

  it("a file that is written while others rest keeps none of them waiting", async () => {
    followed = await openFollowed({ "a.txt": "a" }, { settleMs: 200 });
    const { world, at } = followed;
    const busy = openSync(at("busy.txt"), "w");
    const timer = setInterval(() => writeSync(busy, "more "), 20);
    try {
      world.write("quiet.txt", "quiet");
      await until(() => world.service.live().some(({ title }) => title === "quiet.txt"));
      expect(world.service.live().map(({ title }) => title)).toEqual(["a.txt", "quiet.txt"]);
    } finally {
      clearInterval(timer);
      closeSync(busy);
    }
    await followed.agrees();
  });
});

describe("a file that changes while it is sent", () => {
  it("a file that changes while it is sent is sent again as it then is, be it text or a PDF", async () => {
    followed = await openFollowed({ "a.txt": "a" });
    const { world, at, agrees } = followed;
    const written = new Set<string>();
    /** Once for each kind of request: what was sent is old when the service gets it. */
    const changeOnce = (request: FakeRequest, path: string, text: string): void => {
      if (written.has(request.operation)) return;
      written.add(request.operation);
      writeFileSync(at(path), text);
    };
    world.service.fault = (request) => {
      if (request.operation === "update") changeOnce(request, "a.txt", "changed while it was updated");
      if (request.operation === "create") changeOnce(request, "b.txt", "changed while it was created");
      if (request.operation === "upload")
        changeOnce(request, "p.pdf", "%PDF-1.7 changed while it was uploaded");
      return undefined;
    };
    writeFileSync(at("a.txt"), "changed");
    writeFileSync(at("b.txt"), "new");
    await agrees(() => ({
      "a.txt": "changed while it was updated",
      "b.txt": "changed while it was created",
    }));
    writeFileSync(at("p.pdf"), "%PDF-1.7 first");
    const uploaded = (): number | undefined => {
      const resource = world.service.live().find(({ title }) => title === "p.pdf");
      return world.service.uploads.get(resource?.url ?? "")?.bytes;
    };
    await until(
      () => uploaded() === "%PDF-1.7 changed while it was uploaded".length && followed.daemon.status().idle,
    );
    expect(world.service.live()).toHaveLength(3);
  });

  it("a file that changes while it is sent and vanishes leaves no resource behind", async () => {
    followed = await openFollowed({ "a.txt": "a", "keep.txt": "keep" });
    const { world, at, agrees } = followed;
    world.service.fault = ({ operation, body }) => {
      if (operation === "create" && body?.["title"] === "b.txt") rmSync(at("b.txt"), { force: true });
      if (operation === "update") rmSync(at("a.txt"), { force: true });
      return undefined;
    };
    writeFileSync(at("b.txt"), "new");
    writeFileSync(at("a.txt"), "changed");
    await agrees(() => ({ "keep.txt": "keep" }));
    expect(followed.daemon.files({ limit: 10 })).toEqual([]);
  });
});

describe("files that come and go faster than they are read", () => {
  it("files that come and go faster than they are read trouble nobody: what is left in the end is what the service has", async () => {
    // Those that were quick enough to be sent are deleted again, which is many within a short time.
    followed = await openFollowed(
      { "keep.txt": "keep" },
      { settleMs: 0, settings: { holdDeletesOver: 1000, holdDeletesPercent: 100 } },
    );
    const { world, agrees, daemon } = followed;
    const script =
      "i=0; while [ $i -lt 400 ]; do echo $i > v$i.txt; [ $i -ge 3 ] && rm v$((i-3)).txt; i=$((i+1)); done";
    const [code] = (await once(spawn("sh", ["-c", script], { cwd: world.root }), "exit")) as [number];
    expect(code).toBe(0);
    await agrees();
    expect(world.service.live()).toHaveLength(4);
    expect(daemon.files({ limit: 10 })).toEqual([]);
  });
});

describe("what gives no event, or hides", () => {
  it("finds a write of the same size and time by its change time", async () => {
    followed = await openFollowed({ "a.txt": "one" });
    const { at, agrees, sent } = followed;
    writeFileSync(at(".times"), "");
    sameTimes(at("a.txt"), at(".times"));
    const { mtimeMs } = statSync(at("a.txt"));
    writeFileSync(at("a.txt"), "two");
    sameTimes(at(".times"), at("a.txt"));
    expect(statSync(at("a.txt")).mtimeMs).toBe(mtimeMs);
    await agrees();
    expect(sent()).toEqual({ update: 1 });
  });

  it("a write through a hard link outside of the source is found by the rescan", async () => {
    followed = await openFollowed({ "sub/a.txt": "one" });
    const { at, agrees, sent, daemon } = followed;
    const outside = mkdtempSync(join(tmpdir(), "kbsync-outside-"));
    try {
      linkSync(at("sub/a.txt"), join(outside, "other-name"));
      await until(() => daemon.status().idle);
      appendFileSync(join(outside, "other-name"), " and two");
      await daemon.retry();
      await agrees();
      expect(sent()).toEqual({ update: 1 });
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  const mapped = [
    "-c",
    "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nm[0:3]=b'two'\nm.flush()",
  ];
  const hasPython = spawnSync("python3", ["-c", "import mmap"]).status === 0;
  it.skipIf(!hasPython)("a write through mmap is found by the rescan (skipped without python3)", async () => {
    followed = await openFollowed({ "a.txt": "one of a kind" });
    const { at, agrees, sent, daemon } = followed;
    expect(spawnSync("python3", [...mapped, at("a.txt")]).status).toBe(0);
    await daemon.retry();
    await agrees();
    expect(sent()).toEqual({ update: 1 });
  });

  it("files from a clock that was ahead, and from long ago, are synced and stay so", async () => {
    followed = await openFollowed({ "a.txt": "a" });
    const { at, agrees, sent, daemon, world } = followed;
    const years = (count: number): Date => new Date(Date.now() + count * 365 * 86_400_000);
    world.write("future.txt", "future");
    utimesSync(at("future.txt"), years(10), years(10));
    world.write("past.txt", "past");
    utimesSync(at("past.txt"), new Date(0), new Date(0));
    writeFileSync(at("a.txt"), "a, from next year");
    utimesSync(at("a.txt"), years(1), years(1));
    await agrees();
    expect(sent()).toEqual({ create: 2, update: 1 });
    // The clock is right again: the same file with a time before the one that was seen.
    writeFileSync(at("future.txt"), "now");
    await agrees();
    expect(sent()).toEqual({ update: 1 });
    await daemon.retry();
    await until(() => daemon.status().idle);
    expect(sent()).toEqual({});
  });

  it("reads a copy with its times that replaces the file by rename, and sends it only if it differs", async () => {
    followed = await openFollowed({ "a.txt": "one" });
    const { at, agrees, sent, daemon } = followed;
    for (const text of ["one", "two"]) {
      const { ino } = lstatSync(at("a.txt"));
      mkdirSync(at(".tmp"), { recursive: true });
      writeFileSync(at(".tmp/a"), text);
      sameTimes(at("a.txt"), at(".tmp/a"));
      renameSync(at(".tmp/a"), at("a.txt"));
      expect(lstatSync(at("a.txt")).ino).not.toBe(ino);
      await daemon.retry();
      await agrees();
    }
    expect(sent()).toEqual({ update: 1 });
  });
});
