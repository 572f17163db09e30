import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../e2e/program.ts";
import { bootContainer, type Container, INSTALLED, NODE, until, whyNoContainer } from "./container.ts";

const why = whyNoContainer();
const CONFIG = "/etc/kbsync/kbsync.config.json";
const STATE = "/var/lib/kbsync";
const AT = ["--config", CONFIG, "--state-dir", STATE] as const;
const SERVICE = { port: 7411 };
/** From a stop's signal to the end. */
const STOP_MS_MAX = 10_000;

describe.skipIf(why !== undefined)(`under systemd${why === undefined ? "" : `: skipped, ${why}`}`, () => {
  let box: Container;
  const configure = (config: object | string): void => {
    const text = typeof config === "string" ? config : JSON.stringify(config);
    box.sh(`mkdir -p /etc/kbsync && cat > ${CONFIG} <<'END'\n${text}\nEND`);
  };
  const unit = (): Readonly<Record<string, string>> => box.show("kbsync.service");
  const mainPid = (): number => Number(unit()["MainPID"]);
  /** Starts after failures, ever: the number starts over with each start by hand. */
  const restarts = (): number => Number(unit()["NRestarts"]);
  const statusSays = async (words: RegExp): Promise<void> => {
    await until(`a status with ${words}`, () => (words.test(unit()["StatusText"] ?? "") ? true : undefined));
  };
  const found = (question: string): boolean => {
    const { code, stdout, stderr } = box.kbsync("search", question, ...AT, "--json");
    expect(code, `it said: ${stderr}`).toBe(0);
    return stdout.includes(question.replaceAll(" ", "-"));
  };
  const write = (name: string, text: string): void =>
    void box.sh(`cat > "/srv/handbook/${name}" <<'END'\n${text}\nEND`);
  /** Folder, ledger and service hold the same. */
  const agrees = (): void => {
    const waited = box.kbsync("wait", ...AT, "--timeout", "200");
    expect(waited.code, `${waited.stdout}${waited.stderr}`).toBe(0);
    const report = box.kbsync("verify", ...AT);
    expect(report.code, `${report.stdout}${report.stderr}`).toBe(0);
    expect(report.stdout).toContain("all agree");
  };
  const journal = (): string =>
    box.run("journalctl", "-u", "kbsync.service", "--no-pager", "-o", "cat").stdout;

  beforeAll(async () => {
    box = await bootContainer();
    box.sh(`mkdir -p /srv/handbook /srv/secret && cp -r ${INSTALLED}/sample-docs/. /srv/handbook/`);
    box.sh("echo hidden > /srv/secret/plan.md && chmod 644 /srv/secret/plan.md");
    configure({ service: SERVICE, sources: [{ path: "/srv/handbook" }] });
  });
  afterAll(async () => {
    await box.end();
  });

  it("the installed unit is ready, and reports its state", async () => {
    const { code, stdout, stderr } = box.kbsync("service", "install", "--config", CONFIG);
    expect(code, `${stdout}${stderr}${journal()}`).toBe(0);
    expect(stdout).toContain("wrote      /etc/systemd/system/kbsync.service");
    expect(stdout).toContain("enabled");
    expect(unit()).toMatchObject({
      ActiveState: "active",
      Type: "notify",
      NotifyAccess: "main",
      UnitFileState: "enabled",
      WatchdogUSec: "1min",
    });
    await statusSays(/^7 files searchable$/);
    agrees();
  });

  it("sees its sources, to be read, and no other data", () => {
    const root = `/proc/${mainPid()}/root`;
    expect(box.sh(`ls ${root}/srv`).trim()).toBe("handbook");
    expect(box.sh(`ls -A ${root}/root ${root}/home ${root}/mnt | grep -v : || true`).trim()).toBe("");
    const asItself = `nsenter -t ${mainPid()} -m -- setpriv --reuid "$(stat -c %u /proc/${mainPid()})" --clear-groups`;
    expect(box.run("sh", "-c", `${asItself} touch /srv/handbook/mine`).stderr).toContain("Read-only");
    expect(box.run("sh", "-c", `${asItself} touch ${STATE}/mine && ${asItself} rm ${STATE}/mine`).code).toBe(
      0,
    );
  });

  it("syncs what is written", async () => {
    write("aurora.md", "# Aurora\n\nthe-northern-lights are seen from the dome");
    agrees();
    expect(found("the northern lights")).toBe(true);
  });

  it("the installed unit is back after kill -9, in agreement with what came meanwhile, and nothing is there twice", async () => {
    const before = mainPid();
    box.sh(`kill -9 ${before}`);
    write("comet.md", "# Comet\n\na-comet-with-two-tails");
    await until("another process", () => (mainPid() > 0 && mainPid() !== before ? true : undefined));
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    expect(restarts()).toBe(1);
    agrees();
    expect(found("a comet with two tails")).toBe(true);
  });

  it("the installed unit is not started again and again when its program or its Node.js is gone", async () => {
    for (const [gone, figures] of [
      [NODE, { ActiveState: "failed", ExecMainStatus: "203" }],
      [`${INSTALLED}/dist/main.js`, { ActiveState: "inactive", AssertResult: "no" }],
    ] as const) {
      const before = mainPid();
      box.sh(`mv ${gone} ${gone}.away && kill -9 ${before}`);
      await until("the unit to give up", () =>
        ["failed", "inactive"].includes(unit()["ActiveState"] ?? "") ? true : undefined,
      );
      expect(unit()).toMatchObject(figures);
      box.sh(`mv ${gone}.away ${gone} && systemctl start kbsync`);
    }
    agrees();
  });

  it("gives the reason of a failed start the priority of an error, under its own name", () => {
    configure({ service: SERVICE, sources: [{ pth: "/srv/handbook" }] });
    expect(box.run("systemctl", "restart", "kbsync").code).not.toBe(0);
    expect(box.sh("journalctl -u kbsync -t kbsync -p err -o cat --no-pager")).toContain("unknown key");
    configure({ service: SERVICE, sources: [{ path: "/srv/handbook" }] });
    box.sh("systemctl reset-failed kbsync && systemctl restart kbsync");
    agrees();
  });

  it("writes a journal from which docs/REFERENCE.md's command takes the lines of a file", () => {
    const guide = readFileSync(join(repositoryRoot, "docs/REFERENCE.md"), "utf8");
    const command = /^journalctl -u kbsync .*jq .*$/m.exec(guide)?.[0] ?? "";
    expect(command).toContain("handbook/telescopes.md");
    box.sh(`mkdir -p /etc/systemd/system/kbsync.service.d
      printf '[Service]\\nEnvironment=KBSYNC_LOG_FORMAT=json\\n' > /etc/systemd/system/kbsync.service.d/json.conf
      systemctl daemon-reload && systemctl restart kbsync`);
    agrees();
    write("orion.md", "# Orion\n\nthe-belt-of-orion");
    agrees();
    const lines = box.sh(command.replace("handbook/telescopes.md", "orion.md").replace("jq", "jq -c"));
    expect(lines).toContain('"action":"create"');
    box.sh(
      "rm -r /etc/systemd/system/kbsync.service.d && systemctl daemon-reload && systemctl restart kbsync",
    );
    agrees();
  });

  it("the installed unit is started again by the watchdog when it hangs", async () => {
    box.sh(`mkdir -p /etc/systemd/system/kbsync.service.d
      printf '[Service]\\nWatchdogSec=3\\nTimeoutAbortSec=1\\n' > /etc/systemd/system/kbsync.service.d/quick.conf
      systemctl daemon-reload && systemctl restart kbsync`);
    const before = mainPid();
    box.sh(`kill -STOP ${before}`);
    await until("another process", () => (mainPid() > 0 && mainPid() !== before ? true : undefined));
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    expect(restarts()).toBe(1);
    expect(journal()).toMatch(/[Ww]atchdog timeout/);
    agrees();
    box.sh(
      "rm -r /etc/systemd/system/kbsync.service.d && systemctl daemon-reload && systemctl restart kbsync",
    );
  });

  it("takes a changed configuration, and keeps to the old one while the new one is wrong", async () => {
    const before = mainPid();
    configure({ service: SERVICE, sources: [{ path: "/srv/handbook", exclude: ["comet.md"] }] });
    box.sh("systemctl reload kbsync");
    await until("the news", () => (journal().includes("reloaded the configuration") ? true : undefined));
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    agrees();
    expect(found("a comet with two tails")).toBe(false);

    configure({ service: SERVICE, sources: [{ pth: "/srv/handbook" }] });
    box.sh("systemctl reload kbsync");
    await statusSays(/not applied: .*sources\[0\]\.pa?th/);
    expect(journal()).toContain("unknown key, did you mean path?");
    write("nova.md", "# Nova\n\na-new-star-shines");
    agreesByOldConfiguration();

    configure({ service: { ...SERVICE, port: 7412 }, sources: [{ path: "/srv/handbook" }] });
    // The second while the first is answered.
    const hangUp = "systemctl kill --kill-whom=main -s HUP kbsync";
    box.sh(`${hangUp} && ${hangUp} && systemctl reload kbsync`);
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    await statusSays(/^not applied: service\.port needs a restart; \d+ files searchable/);
    expect(journal()).toContain("not applied: service.port needs a restart");
    agrees();
    expect(found("a comet with two tails")).toBe(true);
    expect(mainPid(), "all of that without another process").toBe(before);
    configure({ service: SERVICE, sources: [{ path: "/srv/handbook" }] });
  });

  /** The commands read the configuration too: while it is wrong only the unit itself can be checked. */
  function agreesByOldConfiguration(): void {
    configure({ service: SERVICE, sources: [{ path: "/srv/handbook", exclude: ["comet.md"] }] });
    agrees();
    expect(found("a new star shines")).toBe(true);
  }

  it("sees a folder that was put in the place of its source", async () => {
    const before = mainPid();
    box.sh(`cp -r /srv/handbook /srv/next && echo "# Pulsar

      a-pulsar-like-a-lighthouse" > /srv/next/pulsar.md
      mv /srv/handbook /srv/secret/last && mv /srv/next /srv/handbook`);
    await until("another process", () => (mainPid() > 0 && mainPid() !== before ? true : undefined));
    expect(journal()).toContain("/srv/handbook was renamed");
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    const token = /--token (\w+)/.exec(box.kbsync("approve", ...AT).stdout)?.[1];
    if (token !== undefined) box.kbsync("approve", "--token", token, ...AT);
    agrees();
    expect(found("a pulsar like a lighthouse")).toBe(true);
  });

  it("stops within ten seconds in the middle of a sync, and goes on at the next start", () => {
    box.sh(`for n in $(seq 400); do echo "# Note $n" > /srv/handbook/note-$n.md; done`);
    const startMs = Date.now();
    box.sh("systemctl stop kbsync");
    expect(Date.now() - startMs).toBeLessThan(STOP_MS_MAX);
    expect(unit()).toMatchObject({ ActiveState: "inactive", Result: "success" });
    box.sh("systemctl start kbsync");
    agrees();
  });

  it("hands over a key that only root can read", async () => {
    box.sh(`install -m 600 ${STATE}/pauthkey /etc/kbsync/hosted.key && mkdir -p /srv/other
      echo "# Quasar" > /srv/other/quasar.md`);
    const url = "http://127.0.0.1:7411";
    const hosted = {
      service: { apiUrl: url, dbUrl: url, resourcesUrl: url, pauthkeyFile: "/etc/kbsync/hosted.key" },
      sources: [{ path: "/srv/other" }],
    };
    box.sh(`cat > /etc/kbsync/hosted.json <<'END'\n${JSON.stringify(hosted)}\nEND`);
    const { stdout } = box.kbsync("service", "install", "--print", "--config", "/etc/kbsync/hosted.json");
    expect(stdout).toContain("LoadCredential=pauthkey:/etc/kbsync/hosted.key");
    const text = stdout.replace("StateDirectory=kbsync", "StateDirectory=kbsync-hosted");
    box.sh(`cat > /etc/systemd/system/kbsync-hosted.service <<'END'\n${text}\nEND`);
    box.sh("systemctl daemon-reload && systemctl start kbsync-hosted");
    const pid = box.show("kbsync-hosted.service")["MainPID"] ?? "";
    expect(box.sh(`tr '\\0' '\\n' < /proc/${pid}/environ`)).not.toContain("KBSYNC_PAUTHKEY");
    await until("its file to be there", () =>
      /^1 file searchable$/.test(box.show("kbsync-hosted.service")["StatusText"] ?? "") ? true : undefined,
    );
    box.sh("systemctl stop kbsync-hosted && rm /etc/systemd/system/kbsync-hosted.service");
  });

  it("keeps a folder with a unit of its own", async () => {
    const { code, stdout, stderr } = box.kbsync("service", "install", "/srv/other");
    expect(code, `${stdout}${stderr}`).toBe(0);
    await until("its file to be there", () =>
      /^1 file searchable$/.test(box.show("kbsync@srv-other.service")["StatusText"] ?? "") ? true : undefined,
    );
    // What the install prints can be typed, whatever the folder's name makes of the unit's.
    box.sh("mkdir '/srv/my other-bücher' && echo '# Nebula' > '/srv/my other-bücher/nebula.md'");
    const odd = box.kbsync("service", "install", "/srv/my other-bücher");
    const hint = /^ask it +sudo kbsync (.*)$/m.exec(odd.stdout)?.[1] ?? "";
    await until("its file to be there", () =>
      /(?<! of )1 file searchable/.test(box.sh(`${NODE} ${INSTALLED}/dist/main.js ${hint}`))
        ? true
        : undefined,
    );
    expect(box.kbsync("service", "uninstall", "/srv/my other-bücher")).toMatchObject({ code: 0 });
    // Another folder's, which was started and never enabled: it has the same file.
    box.sh("mkdir -p /srv/more && systemctl start --no-block kbsync@srv-more");
    const kept = box.kbsync("service", "uninstall", "/srv/other");
    expect(kept).toMatchObject({ code: 0 });
    expect(kept.stdout).toContain(
      "kept       /etc/systemd/system/kbsync@.service, for kbsync@srv-more.service",
    );
    expect(box.kbsync("service", "uninstall", "/srv/more")).toMatchObject({ code: 0 });
    expect(box.show("kbsync@srv-other.service")).toMatchObject({ LoadState: "not-found" });
    expect(box.sh("ls /var/lib/kbsync-srv-other/ledger.db")).toContain("ledger.db");
  });

  it("runs for one person, under their own service manager", async () => {
    box.sh(`useradd -m ada && install -d -o ada /home/ada/docs /home/ada/.config /home/ada/.config/kbsync
      echo "# Engine" > /home/ada/docs/engine.md && loginctl enable-linger ada`);
    const config = "/home/ada/.config/kbsync/kbsync.config.json";
    // Beside the system's unit, which has the default port.
    const content = JSON.stringify({ sources: [{ path: "~/docs" }] });
    box.sh(`echo '${content}' > ${config}`);
    const runtime = `/run/user/${box.sh("id -u ada").trim()}`;
    await until("their service manager", () =>
      box.run("test", "-S", `${runtime}/systemd/private`).code === 0 ? true : undefined,
    );
    const as = ["-u", "ada", "--", "env", "HOME=/home/ada", `XDG_RUNTIME_DIR=${runtime}`] as const;
    const kbsync = (...args: readonly string[]) =>
      box.run("runuser", ...as, NODE, `${INSTALLED}/dist/main.js`, ...args);
    const { code, stdout, stderr } = kbsync("service", "install", "--user", "--config", config);
    expect(code, `it said: ${stdout}${stderr}`).toBe(0);
    expect(box.sh("cat /home/ada/.config/systemd/user/kbsync.service")).toContain("Type=notify");
    const says = (): string =>
      box.run("runuser", ...as, "systemctl", "--user", "show", "-P", "StatusText", "kbsync").stdout.trim();
    await until("its file to be there", () => (says() === "1 file searchable" ? true : undefined));
    expect(kbsync("service", "uninstall", "--user").stdout).toContain(
      "stays in /home/ada/.local/state/kbsync",
    );
  });

  it("the installed unit is put back from a backup that was made while it ran, as its own user's again", async () => {
    box.sh("mkdir /root/backups");
    const made = box.kbsync("backup", ...AT, "/root/backups");
    expect(made.code, `${made.stdout}${made.stderr}`).toBe(0);
    const dated = box.sh("ls -d /root/backups/*/").trim();
    write("after.md", "# Eclipse\n\nan-eclipse-after-the-backup");
    agrees();
    box.sh("systemctl stop kbsync");
    const restored = box.kbsync("restore", ...AT, "--force", dated);
    expect(restored.code, `${restored.stdout}${restored.stderr}`).toBe(0);
    const strangers = (): string =>
      box.sh(`find ${STATE}/ ! -user "$(stat -c %u ${STATE}/)" -not -path '*/before-restore-*'`).trim();
    box.sh(`chown -R --reference=${STATE}/ ${STATE}/ && systemctl start kbsync`);
    expect(strangers()).toBe("");
    expect(box.sh(`stat -c %a ${STATE}/pauthkey ${STATE}/`)).toBe("600\n700\n");
    await until("the unit to be up", () => (unit()["ActiveState"] === "active" ? true : undefined));
    agrees();
    expect(found("an eclipse after the backup")).toBe(true);
    expect(found("the northern lights")).toBe(true);
    box.sh(`rm -r ${STATE}/before-restore-*`);
  });

  it("the installed unit is upgraded in place", () => {
    const manifest = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as object;
    box.sh(
      `cat > ${INSTALLED}/package.json <<'END'\n${JSON.stringify({ ...manifest, version: "99.0.0" })}\nEND`,
    );
    const before = mainPid();
    const { code, stdout } = box.kbsync("service", "install");
    expect(code).toBe(0);
    expect(stdout).toContain("unchanged  /etc/systemd/system/kbsync.service");
    expect(stdout).toContain("restarted");
    expect(mainPid()).not.toBe(before);
    const status = JSON.parse(box.kbsync("status", ...AT, "--json").stdout) as {
      daemon: { version: string };
    };
    expect(status.daemon.version).toBe("99.0.0");
    agrees();
    expect(found("the northern lights")).toBe(true);
  });

  it("the installed unit is uninstalled, and its data stays", () => {
    const { code, stdout } = box.kbsync("service", "uninstall");
    expect(code).toBe(0);
    expect(stdout).toContain(`stays in ${STATE}`);
    expect(unit()).toMatchObject({ LoadState: "not-found", ActiveState: "inactive" });
    expect(box.run("test", "-e", "/etc/systemd/system/kbsync.service").code).not.toBe(0);
    expect(box.sh(`ls ${STATE}/`).split("\n")).toEqual(
      expect.arrayContaining(["ledger.db", "pauthkey", "service"]),
    );
    const again = box.kbsync("service", "install", "--config", CONFIG);
    expect(again.code, `it said: ${again.stderr}`).toBe(0);
    agrees();
  });
});
