import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtPackages } from "./built-packages.ts";
import { bootContainer, type Container, INSTALLED, until, whyNoContainer } from "./container.ts";
import { whyNoPackage } from "./packages.ts";

const why = whyNoPackage() ?? whyNoContainer();
const AT = ["--config", "/etc/kbsync/kbsync.config.json", "--state-dir", "/var/lib/kbsync"] as const;

describe.skipIf(why !== undefined)(
  `the Debian package under systemd${why === undefined ? "" : `: skipped, ${why}`}`,
  () => {
    let box: Container;
    let first = "";
    let second = "";
    const unit = (): Readonly<Record<string, string>> => box.show("kbsync.service");
    const succeeds = (program: string, ...args: readonly string[]): string => {
      const { code, stdout, stderr } = box.run(program, ...args);
      expect(code, `${program} ${args.join(" ")}: ${stdout}${stderr}`).toBe(0);
      return stdout;
    };
    const isActive = (): Promise<true> =>
      until("the unit to be active", () => (unit()["ActiveState"] === "active" ? true : undefined));
    const agrees = (): void => {
      succeeds("kbsync", "wait", ...AT, "--timeout", "200");
      expect(succeeds("kbsync", "verify", ...AT)).toContain("all agree");
    };
    const isThere = (path: string): boolean => box.run("test", "-e", path).code === 0;

    beforeAll(async () => {
      [first = "", second = ""] = await builtPackages();
      box = await bootContainer();
      box.sh(`mkdir -p /srv/handbook && cp -r ${INSTALLED}/sample-docs/. /srv/handbook/`);
    });
    afterAll(async () => {
      await box.end();
    });

    it("installs, prints its version, and starts nothing before it is configured", () => {
      expect(succeeds("dpkg", "-i", first)).toContain("systemctl enable --now kbsync");
      expect(succeeds("kbsync", "--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
      expect(unit()).toMatchObject({
        LoadState: "loaded",
        ActiveState: "inactive",
        UnitFileState: "disabled",
      });
      succeeds("sh", "-c", "dpkg --verify kbsync");
    });

    it("keeps a folder once it is named", async () => {
      const config = JSON.stringify({
        service: { port: 7411 },
        sources: [{ path: "/srv/handbook" }],
      });
      box.sh(`echo '${config}' > /etc/kbsync/kbsync.config.json && systemctl enable --now kbsync`);
      await isActive();
      box.sh("echo 'Whoever comes last turns off the lamp.' > /srv/handbook/lamp.md");
      agrees();
      expect(succeeds("kbsync", "search", "lamp", ...AT)).toContain("lamp.md");
    });

    it("upgrades in place: the unit runs the new program, and configuration and resources stay", async () => {
      const before = unit()["MainPID"];
      succeeds("dpkg", "-i", second);
      await isActive();
      expect(unit()["MainPID"]).not.toBe(before);
      expect(succeeds("dpkg-query", "-W", "-f", "${Version}", "kbsync")).toMatch(/-2$/);
      expect(box.sh("cat /etc/kbsync/kbsync.config.json")).toContain("/srv/handbook");
      agrees();
      // What was created after the upgrade would be a second resource of a file that had one.
      expect(succeeds("kbsync", "log", ...AT, "--json").match(/"action":"create"/g)).toHaveLength(8);
    });

    it("leaves configuration and state when it is removed, and goes on with them when it comes back", async () => {
      succeeds("dpkg", "-r", "kbsync");
      expect([isThere("/usr/bin/kbsync"), isThere("/usr/lib/kbsync"), unit()["ActiveState"]]).toEqual([
        false,
        false,
        "inactive",
      ]);
      expect([
        isThere("/etc/kbsync/kbsync.config.json"),
        isThere("/var/lib/private/kbsync/ledger.db"),
      ]).toEqual([true, true]);
      succeeds("dpkg", "-i", second);
      box.sh("systemctl enable --now kbsync");
      await isActive();
      agrees();
    });

    it("takes its state and configuration along when it is purged, and no document", () => {
      // A unit that runs as somebody has real folders, where others have links to private ones.
      box.sh("useradd -m bob && install -d /srv/other && echo '# Lens' > /srv/other/lens.md");
      succeeds("kbsync", "service", "install", "/srv/other", "--run-as", "bob");
      // Somebody else's, of a name like ours.
      box.sh("mkdir /var/lib/kbsync-notes && echo mine > /var/lib/kbsync-notes/file");
      expect(isThere("/var/lib/kbsync-srv-other/ledger.db")).toBe(true);
      succeeds("dpkg", "-P", "kbsync");
      for (const gone of [
        "/etc/kbsync",
        "/var/lib/kbsync",
        "/var/lib/private/kbsync",
        "/var/cache/kbsync",
        "/var/cache/private/kbsync",
        "/var/lib/kbsync-srv-other",
        "/var/cache/kbsync-srv-other",
        "/etc/systemd/system/kbsync@.service",
        "/etc/systemd/system/multi-user.target.wants/kbsync@srv-other.service",
      ])
        expect([gone, isThere(gone)]).toEqual([gone, false]);
      for (const kept of ["/srv/handbook/lamp.md", "/srv/other/lens.md", "/var/lib/kbsync-notes/file"])
        expect([kept, isThere(kept)]).toEqual([kept, true]);
    });
  },
);
