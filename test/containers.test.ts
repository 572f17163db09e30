import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { CONFIG_FILE_NAME } from "../src/config/config-file.ts";
import { loadConfig } from "../src/config/load.ts";
import { ConfigFile } from "../src/config/schema.ts";
import { PORT_DEFAULT } from "../src/config/schema/service.ts";
import { LIVE_PATH } from "../src/kb/http/routes/monitoring-routes.ts";
import { wholeProgram } from "./cli/manual/program.ts";
import { copyOf, environmentOf, stagesOf } from "./dockerfile.ts";

// No image is built here: what the image and the compose file name must exist, and agree with the program and each other.

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const CONFIG = "/etc/kbsync/kbsync.config.json";
const STATE = "/var/lib/kbsync";

const Healthcheck = z.object({ test: z.array(z.string()), timeout: z.string() });
const Service = z.object({
  command: z.array(z.string()),
  user: z.string(),
  read_only: z.boolean(),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  tmpfs: z.array(z.string()),
  network_mode: z.string().optional(),
  ports: z.array(z.string()).default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  configs: z.array(z.object({ source: z.string(), target: z.string() })),
  secrets: z.array(z.string()).default([]),
  volumes: z.array(z.string()),
  stop_grace_period: z.string(),
  healthcheck: Healthcheck,
});
const Compose = z.object({
  services: z.object({ service: Service, daemon: Service }),
  configs: z.record(z.string(), z.object({ file: z.string() })),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
  volumes: z.record(z.string(), z.null()),
});

const stages = stagesOf(read("Dockerfile"));
const image = stages.at(-1);
const compose = Compose.parse(parse(read("containers/compose.yaml"), { merge: true }));
const services = Object.entries(compose.services);
const wordsOf = (name: string): readonly string[] =>
  (image?.instructions ?? []).filter((one) => one.name === name).map(({ words }) => words);
/** The words of an instruction in the form of a list. */
const listOf = (name: string): readonly string[] =>
  z.array(z.string()).parse(JSON.parse(wordsOf(name)[0] ?? ""));
const environment = environmentOf(image);
const configOf = (name: string) => {
  const mounted = compose.services[name as keyof typeof compose.services].configs[0]?.source ?? "";
  return ConfigFile.parse(JSON.parse(read(join("containers", compose.configs[mounted]?.file ?? ""))));
};
/** The address that a health check asks. */
const askedBy = (test: readonly string[]): string => /fetch\('([^']+)'\)/.exec(test.at(-1) ?? "")?.[1] ?? "";

describe("the Dockerfile", () => {
  it("takes a Node.js in every stage that the program runs on", () => {
    const { engines } = z
      .object({ engines: z.object({ node: z.string() }) })
      .parse(JSON.parse(read("package.json")));
    const oldest = Number(/^>=(\d+)/.exec(engines.node)?.[1]);
    expect(stages.map(({ base }) => Number(/^node:(\d+)-bookworm-slim$/.exec(base)?.[1]) > oldest)).toEqual([
      true,
      true,
    ]);
  });

  it("copies only what there is, and what .dockerignore lets through", () => {
    const lines = read(".dockerignore").split("\n");
    const included = new Set(lines.filter((line) => line.startsWith("!")).map((line) => line.slice(1)));
    const copies = stages.flatMap(({ instructions }) =>
      instructions.filter(({ name }) => name === "COPY").map(copyOf),
    );
    const sources = copies.filter(({ from }) => from === undefined).flatMap((one) => one.sources);
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([]);
    expect(sources.filter((source) => !included.has(source.split("/")[0] ?? ""))).toEqual([]);
    const known = new Set(stages.map(({ alias }) => alias));
    expect(copies.map(({ from }) => from).filter((from) => from !== undefined && !known.has(from))).toEqual(
      [],
    );
  });

  it("runs nothing as root in the end", () => {
    expect(wordsOf("USER")).toEqual(["1000:1000"]);
    expect(image?.instructions.findIndex(({ name }) => name === "USER")).toBeGreaterThan(
      image?.instructions.findIndex(({ name }) => name === "RUN") ?? 0,
    );
  });

  it("starts a command that there is, stopped as the program expects it, with its state in the volume", async () => {
    const commands = (await wholeProgram()).commands.map((command) => command.name());
    expect(listOf("ENTRYPOINT")).toEqual(["kbsync"]);
    expect(wordsOf("RUN").join("\n")).toContain("/opt/kbsync/dist/main.js /usr/local/bin/kbsync");
    expect(commands).toContain(listOf("CMD")[0]);
    expect(wordsOf("STOPSIGNAL")).toEqual(["SIGTERM"]);
    expect(listOf("VOLUME")).toEqual([STATE]);
    expect(environment["STATE_DIRECTORY"]).toBe(STATE);
  });

  it("the Dockerfile works for one folder without any configuration, and finds one that is mounted", () => {
    // The documented `docker run … kbsync up /srv/documents`, in a working folder with nothing in it.
    const alone = loadConfig({
      folders: [{ path: "/srv/documents" }],
      cwd: "/nonexistent",
      env: environment,
    });
    expect(alone.sources.map(({ absolutePath }) => absolutePath)).toEqual(["/srv/documents"]);
    expect(alone.stateDir).toBe(STATE);
    expect(wordsOf("WORKDIR").map((folder) => join(folder, CONFIG_FILE_NAME))).toEqual([CONFIG]);
  });

  it("asks the embedded service how it is", () => {
    const [, test = ""] = /CMD (\[.*\])$/.exec(wordsOf("HEALTHCHECK")[0] ?? "") ?? [];
    expect(askedBy(z.array(z.string()).parse(JSON.parse(test)))).toBe(
      `http://127.0.0.1:${PORT_DEFAULT}${LIVE_PATH}`,
    );
  });
});

describe.each(services)("the compose file's %s", (name, service) => {
  it("runs a command that there is", async () => {
    const commands = (await wholeProgram()).commands.map((command) => command.name());
    expect(commands).toContain(service.command[0]);
    expect(service.command).toHaveLength(1); // no options that may cease to exist
  });

  it("a service of the compose file may write to its volumes and to memory alone, and do nothing that needs a right", () => {
    expect(service).toMatchObject({
      user: wordsOf("USER")[0],
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
    });
    expect(service.tmpfs.map((one) => one.split(":")[0])).toEqual(["/tmp", environment["CACHE_DIRECTORY"]]);
    const [state, ...others] = service.volumes;
    expect(state?.endsWith(`:${STATE}`)).toBe(true);
    expect(Object.keys(compose.volumes)).toContain(state?.split(":")[0]);
    expect(others.filter((volume) => !volume.endsWith(":ro"))).toEqual([]);
  });

  it("a service of the compose file has a configuration that the program takes, with its state in its volume", () => {
    expect(service.configs.map(({ target }) => target)).toEqual([CONFIG]);
    expect(configOf(name).stateDir).toBe(STATE);
  });

  it("a service of the compose file has longer to end than the program takes", () => {
    expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(10);
  });
});

describe("the compose file", () => {
  const { service, daemon } = compose.services;
  const serving = configOf("service").service;
  const running = configOf("daemon");

  it("the compose file has the daemon reach the service over the loopback that they share, once that answers", () => {
    expect(daemon.network_mode).toBe("service:service");
    expect(daemon.depends_on).toMatchObject({ service: { condition: "service_healthy" } });
    if (!("port" in serving) || !("apiUrl" in running.service))
      throw new Error("the two have each other's configuration");
    const url = `http://127.0.0.1:${serving.port}`;
    expect(running.service).toMatchObject({ apiUrl: url, dbUrl: url, resourcesUrl: url });
    expect(askedBy(service.healthcheck.test)).toBe(`${url}${LIVE_PATH}`);
    expect(askedBy(daemon.healthcheck.test)).toBe(`http://127.0.0.1:${running.metrics?.port}${LIVE_PATH}`);
  });

  it("publishes the service to this machine alone, where it gives out that very address", () => {
    if ("apiUrl" in serving) throw new Error("the service is the embedded one");
    const { host, port, publicUrl } = serving;
    // A published port comes in from outside of the container.
    expect(host).toBe("0.0.0.0");
    expect(service.ports).toEqual([`127.0.0.1:${port}:${port}`]);
    expect(publicUrl).toBe(`http://127.0.0.1:${port}`);
    expect(daemon.ports).toEqual([]);
    expect(configOf("service").service).toMatchObject({ requireKey: true });
  });

  it("the compose file exports metrics of both, on ports of their own", () => {
    expect([configOf("service").metrics?.port, running.metrics?.port]).toEqual([9465, 9464]);
  });

  it("hands the daemon its key as a secret, and the service none", () => {
    expect(daemon.secrets).toEqual(Object.keys(compose.secrets));
    expect(service.secrets).toEqual([]);
    expect(running.service).toMatchObject({ pauthkeyFile: `/run/secrets/${daemon.secrets[0]}` });
  });

  it("mounts every source, to be read", () => {
    const mounted = daemon.volumes
      .filter((volume) => volume.endsWith(":ro"))
      .map((volume) => volume.split(":").at(-2));
    expect(running.sources.map(({ path }) => path)).toEqual(mounted);
  });
});
