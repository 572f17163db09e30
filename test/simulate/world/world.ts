import { basename } from "node:path";
import { fileTag, sourceTag } from "../../../src/sync/plan/marker.ts";
import type { SourceStatus } from "../../../src/wire/daemon-status.ts";
import type { Happening, History } from "../history.ts";
import { openClock, type Clock } from "../virtual/clock.ts";
import { realTurn } from "../virtual/globals.ts";
import { openRandom } from "../virtual/random.ts";
import { enterStage, type Stage } from "../virtual/stage.ts";
import { openDisk, SOURCE_ROOT, type Disk } from "./disk.ts";
import { IGNORE_FILES, openExpectations, placeOf, type Expectations } from "./expected.ts";
import { openJudge, type Judge } from "./judge.ts";
import { openMachine, type Machine } from "./machine.ts";
import { metadataAt } from "./metadata.ts";
import { openNetwork, type Network } from "./network.ts";
import { normaliserOf } from "./normalise.ts";
import {
  HOLD_DELETES_OVER,
  HOLD_DELETES_PERCENT,
  isLedgerOpen,
  isOwned,
  knowsCollection,
  openRunner,
  OWNER_ID,
  ownedBy,
  ownersOf,
  type Runner,
} from "./runner.ts";
import { openService, type Service } from "./service.ts";
import { openWatching, type Watching } from "./watcher.ts";

/** All parts of a simulated world. */
export interface World {
  readonly clock: Clock;
  readonly stage: Stage;
  readonly disk: Disk;
  readonly service: Service;
  readonly network: Network;
  readonly watching: Watching;
  readonly expectations: Expectations;
  readonly machine: Machine;
  readonly runner: Runner;
  readonly judge: Judge;
  readonly note: (line: () => string) => void;
}

/** Puts a world together, as it is before the daemon's first start. `report` gets every line of the trace. */
export function openWorld({ seed, conditions, happenings }: History, report: (line: string) => void): World {
  const clock = openClock(realTurn);
  const machine = openMachine();
  const random = openRandom(`daemon ${seed}`);
  const stage: Stage = { clock, disk: undefined, random, process: machine.boot(() => undefined) };
  enterStage(stage);
  const owners = ownersOf(conditions);
  const disk = openDisk(clock, openRandom(`disk ${seed}`), {
    slowMs: conditions.slowDiskMs,
    isDouble: owners.second !== undefined,
    isNested: conditions.nested === true,
    coarseMs: conditions.coarseMs ?? 0,
    isMounted: conditions.mounted === true,
  });
  if (conditions.git === true) disk.write(".git/HEAD", Buffer.from("ref: refs/heads/main"));
  stage.disk = disk;
  const service = openService(clock, openRandom(`service ${seed}`), conditions);
  const watching = openWatching(clock, openRandom(`watch ${seed}`), disk, {
    isMounted: conditions.mounted === true,
    hasInner: () => runner.hasInner(),
  });
  const {
    untitled,
    odd,
    descriptions = "as-sent",
    deletes,
    puts,
    upserts,
    ...hostility
  } = conditions.hostility ?? {};
  const normaliser = normaliserOf(conditions.normalisation);
  const stored = untitled === true ? { ...normaliser, title: () => "Untitled" } : normaliser;
  const expectations = openExpectations(clock, disk, owners, stored, {
    keeps: conditions.additive === true,
    hasInner: () => runner.hasInner(),
  });
  const note = (line: () => string): void =>
    report(`${clock.nowMs().toFixed(3)} ${machine.withoutFolder(line())}`);
  const network = openNetwork({
    clock,
    random: openRandom(`network ${seed}`),
    service,
    slowMs: conditions.slowNetMs,
    timeoutMs: conditions.requestTimeoutMs,
    keys: conditions.keys,
    report: note,
  });
  const runner = openRunner({
    clock,
    stage,
    machine,
    network,
    watching,
    conditions,
    note,
    judge: () => judge,
    onSources: () => expectations.refresh(),
  });
  const showsMarkers = odd !== "nulls" && descriptions !== "cut" && descriptions !== "dropped";
  // The documents of other owners are none of the daemon's.
  const isHostile = conditions.hostility !== undefined && hostility.ignoresOwner !== true;
  const hasOthers = isHostile || happenings.some(isWritersChange);
  const hasTrueLists = !happenings.some(isListWrong) && (conditions.listLagMs ?? 0) === 0;
  const isListTrue =
    showsMarkers &&
    hostility.listMax === undefined &&
    hostility.listStaleMs === undefined &&
    hasTrueLists &&
    conditions.normalisation === undefined;
  const judge = openJudge({
    clock,
    service,
    expectations,
    freeDeletes: (files) => Math.max(HOLD_DELETES_OVER, Math.floor((files * HOLD_DELETES_PERCENT) / 100)),
    concurrency: conditions.concurrency,
    owners,
    chunkSize: () => runner.chunkSize(),
    isDown: () => network.isDown(),
    hasCoarseTimes: (conditions.coarseMs ?? 0) > 0,
    takesMetadata: conditions.metadataFromMs !== undefined,
    isListTrue,
    isListWhole: hostility.listMax === undefined,
    showsMarkers,
    showsTimes: odd !== "numbers",
    showsWork: odd !== "numbers",
    showsSettings: odd !== "texts",
    deletes: deletes === undefined,
    losesWrites: puts === "ignored" || upserts === true,
    mayHold: {
      identity: hasOthers,
      unclear: hasOthers || happenings.some(isLoss) || !hasTrueLists,
      lost: hasOthers || happenings.some(isLoss),
    },
    keepsRenamed: conditions.isLostAtRest === true,
    reportsCollections: conditions.collections,
    knowsCollection: () => knowsCollection(stage.process),
    ownedBy: (place) => ownedBy(stage.process, place),
    hasInner: () => runner.hasInner(),
    hasOtherRoot: () => disk.root() === "other",
    hiddenFolders: () => hiddenAtFirst(service, happenings).filter((folder) => folder !== ""),
    isLedgerOpen: () => isLedgerOpen(stage.process),
    isOwned: (docId) => isOwned(stage.process, docId),
    metadataOf: (path) => metadataAt(disk, path, runner.team(), runner.hasInner()),
  });
  disk.onCall = (name, first) => judge.diskCall(name, first);
  disk.onChange = (path) => {
    expectations.refresh();
    judge.changed(path);
    watching.changed(path);
  };
  if (conditions.strangers) addStrangers(service);
  if (conditions.hostility?.ignoresOwner === true) addMarked(service);
  expectations.refresh();
  return { clock, stage, disk, service, network, watching, expectations, machine, runner, judge, note };
}

/** Returns the folders that another file system hid when the first resource below them was made; "" is the source's. */
export function hiddenAtFirst(service: Service, happenings: readonly Happening[]): readonly string[] {
  const own = service.resources().filter(({ foreign }) => !foreign);
  return happenings.flatMap((each) => {
    if (each.kind !== "mount" || each.state !== "over") return [];
    const { folder, atMs, forMs } = each;
    const below = own.filter((resource) => folder === "" || placeOf(resource).startsWith(`${folder}/`));
    const firstMs = Math.min(...below.map(({ id }) => service.madeMs(id)));
    return atMs <= firstMs && firstMs <= atMs + forMs ? [folder] : [];
  });
}

function isListWrong(happening: Happening): boolean {
  const name =
    happening.kind === "storm" ? happening.storm : happening.kind === "fault" ? happening.fault : "";
  return name.startsWith("list-");
}

/** Whether another installation, or a person at the service's page, leaves markers that are not this one's. */
function isWritersChange(happening: Happening): boolean {
  return happening.kind === "elsewhere" || (happening.kind === "page" && happening.deed === "damage");
}

/** Whether the service loses something, or the ledger knows what the service had before. */
function isLoss(happening: Happening): boolean {
  if (happening.kind === "crash") return happening.kept === "backup" || typeof happening.kept === "number";
  return ["reset", "restore", "page"].includes(happening.kind);
}

/** What others have there: the same titles and texts, in the daemon's own place and elsewhere. */
/** What others have at the service is a day old when the simulation begins. */
const STRANGERS_AGE_MS = 86_400_000;

function addStrangers(service: Service): void {
  for (const [title, content] of [
    ["x.txt", "text 1"],
    ["Title 1", "# Title 1\n\ntext 1"],
    ["a/y.txt", "text 2"],
  ] as const) {
    const facts = { title, content, tier: "fastest" };
    service.addForeign({ ...facts, description: "by hand", ownerId: OWNER_ID }, STRANGERS_AGE_MS);
    service.addForeign({ ...facts, description: title, ownerId: "somebody else" }, STRANGERS_AGE_MS);
  }
}

/** What another installation has there for another owner, of a folder with the name of the source's; one marker is damaged. */
function addMarked(service: Service): void {
  for (const path of ["x.txt", "n.md", "a/y.txt"]) {
    const marker = `[kb:${sourceTag(basename(SOURCE_ROOT))}.${fileTag(path)}.${"b".repeat(12)}.${"w".repeat(8)}`;
    const description = `${path} ${marker}${path === "n.md" ? "" : "]"}`;
    const facts = { title: path, content: `their ${path}`, tier: "fastest", ownerId: "somebody else" };
    service.addForeign({ ...facts, description }, STRANGERS_AGE_MS);
  }
}

/** Lets something of a history happen. What is not possible as things are is left out. */
export function happen(world: World, happening: Happening): void {
  const { clock, disk, network, watching, runner, judge, machine, service, note } = world;
  const afterwards = (ms: number, run: () => void): void => {
    clock.at(clock.nowMs() + ms, { alive: true }, run);
  };
  note(() => JSON.stringify(happening));
  switch (happening.kind) {
    case "write":
      disk.write(happening.path, Buffer.from(happening.text));
      break;
    case "append":
      disk.append(happening.path, Buffer.from(happening.text));
      break;
    case "rewrite":
      rewrite(world, happening);
      break;
    case "rename":
      disk.rename(happening.path, happening.to);
      break;
    case "swap":
      disk.swap(happening.path, happening.to);
      break;
    case "copy": {
      const bytes = disk.bytes(happening.path);
      if (bytes !== undefined) disk.write(happening.to, bytes);
      break;
    }
    case "remove":
      remove(world, happening);
      break;
    case "touch":
      disk.touch(happening.path, clock.wallMs() - happening.agoMs);
      break;
    case "spoil":
      disk.spoil(happening.path, happening.code);
      clock.onDisk(clock.nowMs() + happening.forMs, () => disk.spoil(happening.path, undefined));
      break;
    case "root":
      disk.setRoot(happening.state);
      clock.onDisk(clock.nowMs() + happening.forMs, () => disk.setRoot("here"));
      break;
    case "mount": {
      const { folder, state, forMs, changes } = happening;
      disk.mount(folder, state);
      clock.onDisk(clock.nowMs() + forMs, () => {
        disk.mount(
          folder,
          "here",
          changes.map(({ path, text }) => [path, Buffer.from(text)]),
        );
        world.expectations.refresh();
        world.judge.changed();
      });
      break;
    }
    case "approve":
      approve(world);
      break;
    case "pause":
      pause(world, happening.forMs);
      break;
    case "backup":
      machine.backUp();
      break;
    case "reset":
    case "restore": {
      const before = service.resources().filter(({ foreign, deleted }) => !foreign && !deleted).length;
      const lost =
        happening.kind === "reset" ? service.lose(happening.share) : service.restore(happening.agoMs);
      judge.reset(lost, before);
      break;
    }
    case "foreign": {
      const { title, description, text } = happening;
      // Nothing distinguishes it from what such a create makes.
      if (judge.isMaking(title, description, text)) break;
      service.addForeign({ title, description, content: text, ownerId: OWNER_ID, tier: "fastest" });
      break;
    }
    case "page": {
      const before = service.edit(happening.deed, happening.nth);
      if (happening.deed === "delete" && before !== undefined) judge.reset([before], 1);
      break;
    }
    case "elsewhere":
      runner.moveOn(happening.state);
      break;
    case "clock":
      clock.setWall(happening.byMs);
      judge.clockSet();
      break;
    case "crash":
      runner.crash(happening.effects, happening.kept, happening.restMs, happening.next);
      break;
    case "kills":
      runner.crashInARow(happening.effects, happening.restMs);
      break;
    case "stop":
      runner.stop(happening.restMs, happening.next);
      break;
    case "configure":
      runner.configure(settingsIn(happening));
      break;
    case "fault":
      network.expect(happening);
      break;
    case "storm":
      network.begin(happening);
      afterwards(happening.forMs, () => network.end(happening));
      break;
    case "deaf":
      watching.deafen();
      afterwards(happening.forMs, () => watching.hearAgain(happening.reported));
      break;
    case "degraded":
      watching.degrade("the limit of watches is reached");
      afterwards(happening.forMs, () => watching.degrade(undefined));
      break;
  }
}

function settingsIn({ chunkSize, team, inner }: Extract<Happening, { kind: "configure" }>) {
  return {
    ...(chunkSize !== undefined && { chunkSize }),
    ...(team !== undefined && { team }),
    ...(inner !== undefined && { inner }),
  };
}

function rewrite(
  { disk, clock, judge }: World,
  { path, manner, forMs, text }: Extract<Happening, { kind: "rewrite" }>,
): void {
  const bytes = Buffer.from(text);
  /** Without its folder, the rest of the file is lost, and with it what it excluded. */
  const then = (run: () => boolean): void => {
    clock.onDisk(clock.nowMs() + forMs, () => {
      if (!run() && IGNORE_FILES.includes(path)) judge.rulesLost();
    });
  };
  switch (manner) {
    case "emptied":
      disk.write(path, Buffer.alloc(0));
      then(() => disk.write(path, bytes));
      break;
    case "in-steps": {
      const [first = ""] = text.split("\n", 1);
      disk.write(path, Buffer.from(`${first}\n`));
      then(() => disk.append(path, bytes.subarray(first.length + 1)));
      break;
    }
    case "renamed-away":
      judge.rulesHidden(clock.nowMs() + forMs);
      disk.rename(path, `${path}.bak`);
      then(() => disk.write(path, bytes));
      break;
    case "renamed-over":
      disk.write(`${path}.tmp`, bytes);
      clock.onDisk(clock.nowMs() + forMs, () => disk.rename(`${path}.tmp`, path));
      break;
    case "removed":
      judge.rulesHidden(clock.nowMs() + forMs);
      disk.remove(path);
      then(() => disk.write(path, bytes));
      break;
  }
}

function remove(
  { disk, expectations, judge, clock }: World,
  { paths, empties, everyMs = 0 }: Extract<Happening, { kind: "remove" }>,
): void {
  // The second source is judged by itself, and not for masses.
  const before = expectations.all().filter(({ isSecond }) => !isSecond);
  const goneOf = (roots: readonly string[]): string[] =>
    before
      .filter(({ path }) => roots.some((each) => path === each || path.startsWith(`${each}/`)))
      .map(({ place }) => place);
  const gone = goneOf(paths);
  const isMass = gone.length > HOLD_DELETES_OVER && gone.length * 100 > before.length * HOLD_DELETES_PERCENT;
  const isEmptied = empties === true && gone.length === before.length && gone.length > 1;
  const isJudged = (isMass || isEmptied) && disk.root() === "here";
  if (everyMs === 0) {
    if (isJudged) judge.massRemoved(gone, isEmptied ? 0 : before.length);
    for (const path of paths) disk.remove(path);
    return;
  }
  // A path without a file would make a pause, and a long pause ends the burst.
  const there = paths.filter((path) => goneOf([path]).length > 0);
  for (const [at, path] of there.entries()) {
    clock.onDisk(clock.nowMs() + at * everyMs, () => {
      disk.remove(path);
      // Those that are still there are no part of it yet.
      if (isJudged && isEmptied) judge.massRemoved(goneOf(there.slice(0, at + 1)), 0);
    });
  }
}

/** Whether a source waits for a person: not while the daemon says that it asks the service again. */
export function isForPerson({ held, holdReason }: SourceStatus): boolean {
  return (held > 0 || holdReason !== null) && holdReason?.endsWith("asks again by itself") !== true;
}

/** A person who reads the status and agrees to what is held, but not while the folder is not in its place. */
export function approve({ runner, disk, judge, note }: World): void {
  const daemon = runner.running();
  if (daemon === undefined || disk.root() !== "here") return;
  const waiting = daemon.status().sources.filter(isForPerson);
  if (waiting.length === 0) return;
  const held = waiting.reduce((sum, each) => sum + each.held, 0);
  note(
    () => `a person agrees to ${held} deletes: ${waiting.map((each) => each.holdReason ?? "").join(", ")}`,
  );
  judge.agreed(held);
  void daemon.approve();
}

function pause({ runner, judge, clock }: World, forMs: number): void {
  const daemon = runner.running();
  if (daemon === undefined) return;
  const goOn = (): void => {
    judge.resumes();
    // Pauses outlast processes: the daemon of that time is resumed.
    const later = runner.running();
    let isDone = false;
    const goOnNow = async (): Promise<void> => {
      await later?.resume();
      isDone = later !== undefined;
    };
    // The process may die before the word is on disk: the person then repeats it.
    clock.at(clock.nowMs() + (later === undefined ? 1000 : 60_000), { alive: true }, () => {
      if (!isDone) goOn();
    });
    goOnNow().catch(() => undefined);
  };
  const isPaused = judge.pauses();
  daemon.pause().then(
    isPaused,
    () => undefined, // It died before the word was on disk.
  );
  clock.at(clock.nowMs() + forMs, { alive: true }, goOn);
}
