import { hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileTag, readMarker } from "../../src/sync/plan/marker.ts";
import { withoutMarker } from "../../src/wire/marker.ts";
import type { ResourceRecord } from "../../src/wire/resource.ts";
import { type Ended, kbsync, type Started, startProgram, temporaryFolder } from "../e2e/program.ts";
import { type FaultProxy, openFaultProxy } from "./fault-proxy.ts";
import type { CrashService, Foreign } from "./service.ts";

/** Files below this folder have a description that `configure` changes. */
export const RETITLED = "retitled";
const CHUNK_CHARS = 1000;
const PDF_HEAD = Buffer.from("%PDF-");
/** Nobody listens there: for the proxy of a ground whose daemon does not go through it. */
const NOWHERE = "http://127.0.0.1:9";

/** What of the recipes can be changed by the configuration. */
export interface Recipes {
  /** When it changes, all resources have to be replaced. */
  readonly chunkChars: number;
  /** First word of the descriptions below `retitled`: when it changes, only that goes over the wire. */
  readonly word: string;
}

export interface GroundOptions {
  /** A service of its own, reached through the proxy, or the one that `kbsync up` runs beside the daemon. */
  readonly service: CrashService | "embedded";
  readonly ownerId: string;
  readonly bare?: boolean;
  /** What the service makes of titles and texts. Default: nothing. */
  readonly normalise?: (field: "title" | "description" | "content", text: string) => string;
  /** How long a request hangs, see the proxy. */
  readonly hangMs?: number;
  /** Default: a folder beside the documents. */
  readonly stateDir?: string;
}

/** A folder of documents, a state folder and a configuration that reaches the service through a fault proxy. */
export interface Ground {
  readonly root: string;
  readonly stateDir: string;
  readonly configFile: string;
  readonly ownerId: string;
  readonly bare: boolean;
  readonly proxy: FaultProxy;
  write(path: string, bytes: string | Buffer): void;
  /** Writes the configuration again; a daemon that is started after it goes by it. */
  configure(recipes: Partial<Recipes>): void;
  /** Starts `kbsync run`, or another command, and lets it run. */
  start(command?: string): Started;
  /** Runs a command of the program on this configuration. */
  command(...args: readonly string[]): Promise<Ended>;
  /** Makes a resource of the same owner that is none of ours; `disagreements` sees to it that it stays as it is. */
  addForeign(what: Foreign): Promise<void>;
  /**
   * What keeps the service from holding exactly one resource a file, each with the file's content; empty when nothing
   * does. Pass an embedded service as it runs now.
   */
  disagreements(running?: CrashService): Promise<string[]>;
  /** What was asked of the service about the resources that the lines of `disagreements` name, to find out why. */
  historyOf(wrong: readonly string[]): string;
  end(): Promise<void>;
}

const open = new Set<Ground>();

/** Ends the grounds that a failed test left as they were, and what runs on them. */
export async function endGrounds(): Promise<void> {
  await Promise.all([...open].map(async (ground) => ground.end()));
}

/** Lays everything out. Starts no daemon. */
export async function openGround(options: GroundOptions): Promise<Ground> {
  const { ownerId, bare = false, hangMs, normalise = (_field, text) => text } = options;
  const service = options.service === "embedded" ? undefined : options.service;
  const base = temporaryFolder("crash");
  const root = join(base.path, "docs");
  mkdirSync(root);
  const stateDir = options.stateDir ?? join(base.path, "state");
  const configFile = join(base.path, "kbsync.config.json");
  const proxy = await openFaultProxy({
    target: service?.url ?? NOWHERE,
    bare,
    ...(hangMs !== undefined && { hangMs }),
  });
  const foreign = new Map<string, string>();
  let recipes: Recipes = { chunkChars: CHUNK_CHARS, word: "from" };

  const writeConfig = (): void => {
    const { url } = proxy;
    const rules = [
      { match: "**", description: "from {path}" },
      { match: `${RETITLED}/**`, description: `${recipes.word} {path}` },
    ];
    const config = {
      service:
        service === undefined
          ? { port: 0 }
          : { apiUrl: url, dbUrl: url, resourcesUrl: service.url, pauthkeyFile: service.keyFile },
      stateDir,
      sources: [{ path: root, ownerId, settings: { chunkSize: recipes.chunkChars }, rules }],
    };
    // At once: a daemon that starts at this moment reads the old one or the new one.
    writeFileSync(`${configFile}.new`, JSON.stringify(config, undefined, 2));
    renameSync(`${configFile}.new`, configFile);
  };
  writeConfig();

  const wanted = (): string[] => {
    const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    return files.map((file) => {
      const path = join(file.parentPath, file.name);
      const title = path.slice(root.length + 1);
      const word = title.startsWith(`${RETITLED}/`) ? recipes.word : "from";
      const bytes = readFileSync(path);
      const isText = !bytes.subarray(0, 5).equals(PDF_HEAD);
      const sent = isText ? Buffer.from(normalise("content", bytes.toString("utf8"))) : bytes;
      const description = normalise("description", `${word} ${title}`);
      const name = `${normalise("title", title)} [${fileTag(title)}]`;
      return inOneLine(name, description, recipes.chunkChars, sent);
    });
  };
  const found = async (at: CrashService, resources: readonly ResourceRecord[]): Promise<string[]> =>
    Promise.all(
      resources.map(async ({ title, description, content, url, settings }) => {
        const reading = readMarker(description);
        const name = `${title} [${reading.kind === "whole" ? reading.marker.file : reading.kind}]`;
        const isFile = url !== undefined && url !== null;
        const bytes = isFile ? await at.bytesOf(url) : Buffer.from(content ?? "");
        return inOneLine(name, withoutMarker(description), settings?.chunkSize ?? 0, bytes);
      }),
    );

  const started: Started[] = [];
  const ground: Ground = {
    root,
    stateDir,
    configFile,
    ownerId,
    bare,
    proxy,
    write: (path, bytes) => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), bytes);
    },
    configure: (changed) => {
      recipes = { ...recipes, ...changed };
      writeConfig();
    },
    start: (command = "run") => {
      const running = startProgram([command, "--config", configFile]);
      started.push(running);
      return running;
    },
    command: (...args) => kbsync([...args, "--config", configFile]),
    addForeign: async (what) => {
      if (service === undefined) throw new Error("nobody else reaches an embedded service");
      const { _id } = await service.create(ownerId, what);
      const listed = await service.list(ownerId);
      foreign.set(_id, JSON.stringify(listed.find((each) => each._id === _id)));
    },
    disagreements: async (at = service) => {
      if (at === undefined) throw new Error("pass the embedded service");
      const listed = await at.list(ownerId);
      const problems: string[] = [];
      for (const [id, before] of foreign) {
        const now = listed.find(({ _id }) => _id === id);
        if (JSON.stringify(now) !== before) problems.push(`foreign ${before} is now ${JSON.stringify(now)}`);
      }
      const ours = await found(
        at,
        listed.filter(({ _id }) => !foreign.has(_id)),
      );
      const files = wanted();
      problems.push(...difference(files, ours).map((each) => `missing ${each}`));
      problems.push(...difference(ours, files).map((each) => `too much ${each}`));
      return problems;
    },
    historyOf: (wrong) => {
      const isNamed = (title: string | undefined): boolean =>
        title !== undefined && wrong.some((line) => line.includes(title));
      const ids = new Set(proxy.requests.flatMap(({ title, docId }) => (isNamed(title) ? [docId] : [])));
      return proxy.requests
        .filter(({ title, docId }) => isNamed(title) || (docId !== undefined && ids.has(docId)))
        .map(({ number, atMs, operation, title, docId, fault }) =>
          [number, new Date(atMs).toISOString(), operation, title, docId, fault].join(" "),
        )
        .join("\n");
    },
    end: async () => {
      open.delete(ground);
      for (const { child } of started) child.kill("SIGKILL");
      await proxy.close();
      base.remove();
    },
  };
  open.add(ground);
  return ground;
}

/** What two sides must agree in, in one line: `name` has the title and the marker's file. Space around a text is the service's to keep or not. */
function inOneLine(name: string, description: string, chunkChars: number, bytes: Buffer): string {
  const digest = hash("sha256", bytes.toString("latin1").trim()).slice(0, 12);
  return `${name} (${description}), chunks of ${chunkChars}, ${digest}`;
}

/** What `list` has more often than `other`. */
function difference(list: readonly string[], other: readonly string[]): string[] {
  const left = [...other];
  return list.filter((each) => {
    const index = left.indexOf(each);
    if (index !== -1) left.splice(index, 1);
    return index === -1;
  });
}
