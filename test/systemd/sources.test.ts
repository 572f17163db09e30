import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bootContainer, type Container, until, whyNoContainer } from "./container.ts";

const why = whyNoContainer();
const CONFIG = "/etc/kbsync/kbsync.config.json";
const AT = ["--config", CONFIG, "--state-dir", "/var/lib/kbsync"] as const;

describe.skipIf(why !== undefined)(
  `sources under systemd${why === undefined ? "" : `: skipped, ${why}`}`,
  () => {
    let box: Container;
    const unit = (): Readonly<Record<string, string>> => box.show("kbsync.service");
    const statusSays = async (words: RegExp): Promise<void> => {
      await until(`a status with ${words}`, () =>
        words.test(unit()["StatusText"] ?? "") && unit()["ActiveState"] === "active" ? true : undefined,
      );
    };
    const warnings = (): string =>
      box.run("journalctl", "-u", "kbsync", "-t", "kbsync", "-p", "4..4", "-o", "cat", "--no-pager").stdout;
    /** Whether the unit, with all that root may do, can write below a folder. */
    const writes = (folder: string): boolean =>
      box.run("nsenter", "-t", unit()["MainPID"] ?? "", "-m", "--", "touch", `${folder}/written`).code === 0;
    const configure = (...paths: readonly string[]): void => {
      const config = { service: { port: 7411 }, sources: paths.map((path) => ({ path })) };
      box.sh(`mkdir -p /etc/kbsync && cat > ${CONFIG} <<'END'\n${JSON.stringify(config)}\nEND`);
    };
    /** A disk with one file, as a unit of systemd mounts it. */
    const makeDisk = (name: string, folder: string): void => {
      box.sh(`mkdir -p /run/disks/${name} && mount -t tmpfs ${name} /run/disks/${name}
        echo "# ${name}" > /run/disks/${name}/${name}.md && mkdir -p /etc/systemd/system
        printf '[Mount]\\nWhat=/run/disks/${name}\\nWhere=${folder}\\nOptions=bind\\n' \\
          > "/etc/systemd/system/$(systemd-escape -p --suffix=mount ${folder})"
        systemctl daemon-reload`);
    };

    beforeAll(async () => {
      box = await bootContainer();
      box.sh(`mkdir -p /srv/always /srv/closed /srv/there
        echo "# Always" > /srv/always/a.md && echo "# Closed" > /srv/closed/c.md && chmod 700 /srv/closed`);
      configure("/srv/always", "/srv/closed", "/srv/absent", "/srv/late/docs", "/srv/there");
      const { code, stdout, stderr } = box.kbsync("service", "install", "--config", CONFIG);
      if (code !== 0) throw new Error(`${stdout}${stderr}`);
    });
    afterAll(async () => {
      await box.end();
    });

    it("sources under systemd that cannot be read or are missing are warned of once, with what to do", async () => {
      await statusSays(/\/srv\/closed halted: the folder cannot be read: EACCES.*; 1 file searchable$/);
      expect(unit()["StatusText"]).toContain(
        "/srv/absent halted: the folder is missing, or kbsync.service does not show it",
      );
      const linesOf = (): string[] =>
        warnings()
          .split("\n")
          .filter((line) => line.includes("/srv/"));
      // The journal may be behind the status.
      const lines = await until("three warnings", () => (linesOf().length >= 3 ? linesOf() : undefined));
      expect(lines).toHaveLength(3);
      expect(lines.join("\n")).toContain("check the folder's owner and mode");
      expect(lines.join("\n")).toContain("`systemctl restart kbsync.service` shows it to the unit");
      const { stdout } = box.kbsync("status", ...AT);
      expect(stdout).toContain("`systemctl restart kbsync.service` shows it to the unit");
      expect(stdout).toContain("halted, nothing is sent: the folder cannot be read: EACCES");
    });

    it("sources under systemd that can be read again go on by themselves", async () => {
      box.sh("chmod 755 /srv/closed");
      await statusSays(/absent halted.*; 2 files searchable$/);
      expect(unit()).toMatchObject({ NRestarts: "0" });
    });

    it("sources under systemd that are made later are seen after a restart, as the status says", async () => {
      box.sh(`mkdir /srv/absent && echo "# Absent" > /srv/absent/b.md && systemctl restart kbsync`);
      await statusSays(/late\/docs halted.*; 3 files searchable$/);
      expect(unit()["StatusText"]).not.toContain("/srv/absent");
    });

    it.each([
      ["that come with a disk above them are seen, read-only", "late", "/srv/late", /^4 files searchable$/],
      ["over which a disk is mounted are seen, read-only", "there", "/srv/there", /^5 files searchable$/],
    ])("the sources of a unit %s", async (_name, disk, folder, says) => {
      makeDisk(disk, folder);
      if (disk === "late")
        box.sh("mkdir /run/disks/late/docs && mv /run/disks/late/*.md /run/disks/late/docs");
      const restarts = (): number => Number(unit()["NRestarts"]);
      const before = restarts();
      box.sh(`systemctl start "$(systemd-escape -p --suffix=mount ${folder})"`);
      await until("another start", () => (restarts() > before ? true : undefined));
      await statusSays(says);
      expect(writes(disk === "late" ? `${folder}/docs` : folder)).toBe(false);
    });

    it("sources under systemd are mounted before the unit starts, and one that cannot be mounted holds up no other", async () => {
      box.sh(`systemctl stop kbsync srv-late.mount srv-there.mount
        sed -i s,Options=bind,Type=none-such, /etc/systemd/system/srv-there.mount
        systemctl daemon-reload && systemctl start kbsync`);
      expect(box.show("srv-late.mount")).toMatchObject({ ActiveState: "active" });
      expect(box.show("srv-there.mount")).toMatchObject({ ActiveState: "failed" });
      await statusSays(/\/srv\/there halted.*; 4 of 5 files searchable, 1 waiting$/);
    });

    it("sources under systemd with a unit of their own are synced when their folder comes to be there", async () => {
      makeDisk("own", "/srv/own");
      box.sh(`sed -i s,Options=bind,Type=none-such, /etc/systemd/system/srv-own.mount
        systemctl daemon-reload && mkdir /srv/other`);
      const { code, stdout, stderr } = box.kbsync("service", "install", "/srv/other");
      expect(code, `${stdout}${stderr}`).toBe(0);
      box.run("systemctl", "start", "kbsync@srv-own");
      box.sh(`mkdir -p /srv/own && echo "# Own" > /srv/own/o.md`);
      const says = (): string | undefined => box.show("kbsync@srv-own.service")["StatusText"];
      await until("its file to be there", () => (says() === "1 file searchable" ? true : undefined));
      expect(box.show("srv-own.mount")).toMatchObject({ ActiveState: "failed" });
    });
  },
);
