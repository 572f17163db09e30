import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { CONFIG_FILE_NAME } from "../src/config/config-file.ts";
import { ConfigFile } from "../src/config/schema.ts";
import { LIVE_PATH, READY_PATH } from "../src/kb/http/routes/monitoring-routes.ts";
import { wholeProgram } from "./cli/manual/program.ts";
import { environmentOf, stagesOf } from "./dockerfile.ts";

// Nothing is started here: what the examples of several services name must exist, and agree with the program and each other.

const folder = fileURLToPath(new URL("../containers/several", import.meta.url));
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const environment = environmentOf(stagesOf(readFileSync(join(folder, "../../Dockerfile"), "utf8")).at(-1));
const commands = (await wholeProgram()).commands.map((command) => command.name());

/** The address, port and secret of a configuration with a database. */
function servingOf(config: unknown) {
  const { service, stateDir, metrics } = ConfigFile.parse(config);
  if ("apiUrl" in service) throw new Error("the service is the embedded one");
  return { ...service, stateDir, metricsPort: metrics?.port };
}

describe("the compose file of several services", () => {
  const Container = z.object({
    image: z.string(),
    command: z.array(z.string()).optional(),
    volumes: z.array(z.string()).default([]),
    secrets: z.array(z.string()).default([]),
    configs: z.array(z.object({ source: z.string(), target: z.string() })).default([]),
    ports: z.array(z.string()).default([]),
    environment: z.record(z.string(), z.string()).default({}),
    depends_on: z.union([z.array(z.string()), z.record(z.string(), z.unknown())]).default([]),
    healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  });
  const compose = z
    .object({
      services: z.record(z.string(), Container),
      configs: z.record(z.string(), z.object({ file: z.string() })),
      secrets: z.record(z.string(), z.object({ file: z.string() })),
      volumes: z.record(z.string(), z.null()),
    })
    .parse(parse(read("compose.yaml"), { merge: true }));
  const all = Object.values(compose.services);
  const own = Object.entries(compose.services).filter(([, { image }]) => image === "kbsync");
  const serving = servingOf(JSON.parse(read("service.json")));

  it("runs commands that there are, with what it declares", () => {
    expect(own.map(([name, { command }]) => [name, command])).toEqual([
      ["one", ["serve"]],
      ["two", ["serve"]],
    ]);
    for (const [, { command = [] }] of own) expect(commands).toContain(command[0]);
    const declared = (names: readonly string[], of: object) =>
      names.filter((name) => !Object.keys(of).includes(name));
    expect(
      declared(
        all.flatMap(({ secrets }) => secrets),
        compose.secrets,
      ),
    ).toEqual([]);
    expect(
      declared(
        all.flatMap(({ configs }) => configs.map(({ source }) => source)),
        compose.configs,
      ),
    ).toEqual([]);
    expect(
      declared(
        all.flatMap(({ volumes }) => volumes.map((one) => one.split(":")[0] ?? "")),
        compose.volumes,
      ),
    ).toEqual([]);
    expect(
      declared(
        all.flatMap((one) => (Array.isArray(one.depends_on) ? one.depends_on : Object.keys(one.depends_on))),
        compose.services,
      ),
    ).toEqual([]);
  });

  it("gives each service a state of its own, and all one database and one place for files", () => {
    const states = own.map(([, { volumes }]) => volumes.find((one) => one.endsWith(`:${serving.stateDir}`)));
    expect(new Set(states).size).toBe(own.length);
    expect(states).not.toContain(undefined);
    for (const [, { volumes }] of own) expect(volumes).toContain(`files:${serving.files}`);
    const { hostname, username, pathname } = new URL(serving.database ?? "");
    expect(compose.services["postgres"]?.environment).toMatchObject({
      POSTGRES_USER: username,
      POSTGRES_DB: pathname.slice(1),
      POSTGRES_PASSWORD_FILE: serving.databasePasswordFile,
    });
    expect(Object.keys(compose.services)).toContain(hostname);
    expect(serving.databasePasswordFile).toBe(`/run/secrets/${Object.keys(compose.secrets)[0]}`);
  });

  it("sends requests to services that are ready, and asks the process itself whether it lives", () => {
    const balancer = read("balancer.cfg");
    expect(balancer).toContain(`http-check send meth GET uri ${READY_PATH}\n`);
    const servers = [...balancer.matchAll(/^ {2}server (\w+) (\w+):(\d+)$/gm)].map(([, , host, port]) => [
      host,
      Number(port),
    ]);
    expect(servers).toEqual([
      ["one", serving.port],
      ["two", serving.port],
    ]);
    expect(compose.services["balancer"]?.ports).toEqual([`127.0.0.1:${serving.port}:7411`]);
    for (const name of ["one", "two"])
      expect(compose.services[name]?.healthcheck?.test.at(-1)).toContain(
        `http://127.0.0.1:${serving.port}${LIVE_PATH}`,
      );
  });
});

describe("the objects for Kubernetes", () => {
  const Mount = z.object({ name: z.string(), mountPath: z.string() });
  const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) });
  const Pod = z.object({
    terminationGracePeriodSeconds: z.number().optional(),
    containers: z.tuple([
      z.object({
        image: z.literal("kbsync"),
        args: z.array(z.string()),
        ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
        startupProbe: Probe.optional(),
        livenessProbe: Probe.optional(),
        readinessProbe: Probe.optional(),
        volumeMounts: z.array(Mount),
      }),
    ]),
    volumes: z.array(z.object({ name: z.string() })),
  });
  const Workload = z.object({
    spec: z.object({
      template: z.object({ spec: Pod }),
      volumeClaimTemplates: z.array(z.object({ metadata: z.object({ name: z.string() }) })).default([]),
    }),
  });
  const documents = parseAllDocuments(read("kubernetes.yaml"));
  const objects = new Map(
    documents.map((document) => {
      const object = z.object({ kind: z.string() }).loose().parse(document.toJS());
      return [object.kind, object] as const;
    }),
  );
  const { data } = z.object({ data: z.record(z.string(), z.string()) }).parse(objects.get("ConfigMap"));
  const serving = servingOf(JSON.parse(data[CONFIG_FILE_NAME] ?? ""));
  const set = Workload.parse(objects.get("StatefulSet")).spec;
  const [container] = set.template.spec.containers;

  it("the objects for Kubernetes are what the document says, without an error of syntax", () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    expect(documents.flatMap(({ warnings }) => warnings)).toEqual([]);
    expect([...objects.keys()]).toEqual(["ConfigMap", "StatefulSet", "PodDisruptionBudget", "Service"]);
  });

  it("run commands that there are, with a configuration that the program takes", () => {
    const { template, volumeClaimTemplates } = set;
    const { args, volumeMounts } = container;
    expect(args).toEqual(["serve"]);
    expect(commands).toContain(args[0]);
    const volumes = [...template.spec.volumes, ...volumeClaimTemplates.map(({ metadata }) => metadata)];
    const names = new Set(volumes.map(({ name }) => name));
    expect(volumeMounts.filter(({ name }) => !names.has(name))).toEqual([]);
    const paths = volumeMounts.map(({ mountPath }) => mountPath);
    expect(paths).toContain(serving.stateDir);
    expect(paths.some((path) => serving.databasePasswordFile?.startsWith(`${path}/`))).toBe(true);
    expect(paths).toContain(environment["CACHE_DIRECTORY"]);
  });

  it("ask routes that there are, on the ports of the configuration", () => {
    const { startupProbe, livenessProbe, readinessProbe, ports } = container;
    expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet)).toEqual(
      [LIVE_PATH, LIVE_PATH, READY_PATH].map((path) => ({ path, port: "http" })),
    );
    expect(ports).toEqual([
      { name: "http", containerPort: serving.port },
      { name: "metrics", containerPort: serving.metricsPort },
    ]);
    expect(set.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(15);
  });
});
